//! `cargo xtask bench`: what is measured.

use crate::step::{self, Outcome};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Subject {
    /// Compare engine, batcher and SQLite store with a bare loop over the same SQLite statements.
    Store {
        /// Passed on to the benchmark.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

pub(crate) fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Store { arguments } => step::run(
            "store against bare SQLite",
            step::cargo(["run", "--release", "-p", "semel-benches", "--bin", "store", "--"]).args(arguments),
        ),
    }
}
