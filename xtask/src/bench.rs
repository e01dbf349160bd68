//! `cargo xtask bench`: what is measured.

use crate::step::{self, Outcome};
use crate::{nats, peers, tools};
use clap::Subcommand;
use semel_private_brokers::NATS_SERVER;

#[derive(Subcommand)]
pub(crate) enum Subject {
    /// Compare engine, batcher and SQLite store with a bare loop over the same SQLite statements.
    ///
    /// With --postgres: engine, batcher and PostgreSQL store with pgbench over the same PostgreSQL statements.
    Store {
        /// On a private PostgreSQL instead.
        #[arg(long)]
        postgres: bool,
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compare operations while a reaper forgets as many records as arrive with the same operations without one.
    Reaper {
        /// On a private PostgreSQL instead of SQLite.
        #[arg(long)]
        postgres: bool,
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compare the outbox, on a private PostgreSQL and to a private NATS, with the bare INSERT of its rows and the bare publishing.
    Outbox {
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compare the gateway with nginx, and its protected requests with those that it passes on.
    Gateway {
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Compare Semel with its peers, which are installed below the target directory: Restate, DBOS, idempotent-proxy, Powertools, and
    /// the textbook way on PostgreSQL. Takes a quarter of an hour; with --quick, a minute or two.
    Peers {
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

pub(crate) fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Store { postgres: false, arguments } => step::run(
            "store against bare SQLite",
            step::cargo(["run", "--release", "-p", "semel-benches", "--bin", "store", "--"]).args(arguments),
        ),
        Subject::Reaper { postgres, arguments } => {
            let mut run = step::cargo(["run", "--release", "-p", "semel-benches", "--bin", "reaper", "--"]);
            if *postgres {
                tools::postgres()?;
                run.arg("--postgres");
            }
            step::run("with a reaper against without", run.args(arguments))
        }
        Subject::Gateway { arguments } => {
            tools::load()?;
            step::run("the binary", &mut step::cargo(["build", "--release", "-p", "semel-cli"]))?;
            step::run(
                "the gateway against nginx and itself",
                step::cargo(["run", "--release", "-p", "semel-benches", "--bin", "gateway", "--"])
                    .args(arguments),
            )
        }
        Subject::Peers { arguments } => peers::run(arguments),
        Subject::Outbox { arguments } => {
            tools::postgres()?;
            tools::nats()?;
            let run = ["run", "--release", "-p", "semel-benches", "--bin", "outbox", "--"];
            let mut run = step::cargo(run);
            if let Some(program) = nats::program() {
                run.env(NATS_SERVER, program);
            }
            step::run("the outbox against its two halves alone", run.args(arguments))
        }
        Subject::Store { postgres: true, arguments } => {
            tools::postgres()?;
            let run = ["run", "--release", "-p", "semel-benches", "--bin", "store-postgres", "--"];
            step::run("store against pgbench", step::cargo(run).args(arguments))
        }
    }
}
