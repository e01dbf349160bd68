//! `cargo xtask bench`: what is measured, part by part, into one report.

mod part;

use crate::step::{self, Outcome};
use clap::{Args, Subcommand};
use part::{PARTS, Part, report};

#[derive(Args)]
pub(crate) struct Bench {
    /// One round, as short as can be: to see that it works. The figures mean nothing, and the report is in target/bench/quick.
    #[arg(long, global = true)]
    pub(crate) quick: bool,
    /// What to measure. Without it: everything, which takes about two hours.
    #[command(subcommand)]
    pub(crate) subject: Option<Subject>,
}

#[derive(Subcommand)]
pub(crate) enum Subject {
    /// Compare engine, batcher and SQLite store with a bare loop over the same SQLite statements, and with bare syncs.
    ///
    /// With --postgres: engine, batcher and PostgreSQL store with pgbench over the same PostgreSQL statements.
    Store(OnEither),
    /// Compare a handler inside the layer with the same handler without it.
    Layer(OnEither),
    /// Compare the gateway with nginx, and its protected requests with those that it passes on.
    Gateway(OnEither),
    /// Compare operations while a reaper forgets as many records as arrive with the same operations without one.
    Reaper(OnEither),
    /// Compare a gateway on a private PostgreSQL that has a Redis in front of it with one that has none.
    Cache(Passed),
    /// Compare the outbox, on a private PostgreSQL and to a private NATS, with the bare INSERT of its rows and the bare publishing.
    Outbox(Passed),
    /// Compare a gateway on a store of up to 20 million keys (`--most N`) with one on a store of a hundred thousand.
    Growth(OnEither),
    /// Compare Semel with its peers, which are installed below the target directory: Restate, DBOS, idempotent-proxy, Powertools, and
    /// the textbook way on PostgreSQL.
    Peers(Passed),
    /// Rebuild tables and plots from the measurements that there are.
    Report,
}

#[derive(Args)]
pub(crate) struct OnEither {
    /// On a private PostgreSQL instead of SQLite.
    #[arg(long)]
    pub(crate) postgres: bool,
    #[command(flatten)]
    pub(crate) passed: Passed,
}

#[derive(Args)]
pub(crate) struct Passed {
    /// Passed on to the benchmark.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
}

pub(crate) fn run(bench: &Bench) -> Outcome {
    let measure = |title: &str, passed: &Passed| Part::titled(title)?.run(bench.quick, &passed.arguments);
    let on = |what: &str, on: &OnEither| {
        measure(&format!("{what} on {}", if on.postgres { "PostgreSQL" } else { "SQLite" }), &on.passed)
    };
    match &bench.subject {
        Some(Subject::Store(either)) => on("store", either),
        Some(Subject::Layer(either)) => on("layer", either),
        Some(Subject::Gateway(either)) => on("gateway", either),
        Some(Subject::Reaper(either)) => on("reaper", either),
        Some(Subject::Growth(either)) => on("growth", either),
        Some(Subject::Cache(passed)) => measure("cache", passed),
        Some(Subject::Outbox(passed)) => measure("outbox", passed),
        Some(Subject::Peers(passed)) => measure("peers", passed),
        Some(Subject::Report) => report(bench.quick, None),
        None => everything(bench.quick),
    }
}

/// One part after the other. One that fails keeps nothing from being measured, and is told of in the end.
fn everything(quick: bool) -> Outcome {
    let mut failures = Vec::new();
    for (number, part) in PARTS.iter().enumerate() {
        println!("\n{}", step::in_bold(&format!("part {} of {}: {}", number + 1, PARTS.len(), part.title)));
        if let Err(failure) = part.run(quick, &[]) {
            eprintln!("{}", step::in_red(&failure));
            failures.push(failure);
        }
    }
    if let Err(failure) = report(quick, None) {
        failures.push(failure);
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}
