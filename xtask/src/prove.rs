//! `cargo xtask prove`: what is proved at a larger bound than a test has time for.

use crate::step::{self, Outcome};
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Subject {
    /// Check the state machine that every store runs, in all orders of events, at the large bound.
    ///
    /// The same model runs at a small bound in `cargo xtask test`.
    Model {
        /// Passed on to the model checker.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

pub(crate) fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Model { arguments } => step::run(
            "model at the large bound",
            step::cargo(["run", "--release", "-p", "semel-model", "--", "--large"]).args(arguments),
        ),
    }
}
