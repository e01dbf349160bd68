//! `cargo xtask prove`: what is proved at a larger bound than a test has time for.

use crate::step::{self, Outcome};
use crate::{planted, tools};
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
    /// Run gateways, services, a worker, a provider and both databases as processes, do to them what a bad night does, and judge
    /// by the provider's ledger.
    ///
    /// A short one runs in `cargo xtask test`.
    Campaign {
        /// A million operations for each store, instead of 20,000 in all
        #[arg(long)]
        long: bool,
        /// Passed on to the campaign: --seed, --store, --operations, …
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Plant one bug after the other in the real code, and see that the tests which should notice do; then write proof/PLANTED.md.
    ///
    /// `cargo xtask test` does the quick part of it.
    Planted {
        /// The tests alone, without the campaign; nothing is written
        #[arg(long)]
        quick: bool,
        /// These bugs; all of them if none is named
        names: Vec<String>,
    },
}

pub(crate) fn run(subject: &Subject) -> Outcome {
    match subject {
        Subject::Model { arguments } => step::run(
            "model at the large bound",
            step::cargo(["run", "--release", "-p", "semel-model", "--", "--large"]).args(arguments),
        ),
        Subject::Planted { quick, names } => planted::run(names, *quick),
        Subject::Campaign { long, arguments } => {
            tools::campaign()?;
            let operations = if *long { "1000000" } else { "10000" };
            campaign(
                &["--release"],
                &[&["--operations", operations].map(str::to_owned)[..], arguments].concat(),
            )
        }
    }
}

/// Builds what takes part, and runs it.
pub(crate) fn campaign(profile: &[&str], arguments: &[String]) -> Outcome {
    let parts = ["build", "-p", "semel-cli", "-p", "payment-provider", "-p", "semel-campaign"];
    step::run("campaign: build", step::cargo(parts).args(profile))?;
    let mut run = step::cargo(["run", "-p", "semel-campaign"]);
    step::run("campaign", run.args(profile).arg("--").args(arguments))
}
