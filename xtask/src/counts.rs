//! `cargo xtask counts`: the instructions that the pure parts take, held to what they took before.

use crate::step::{self, Outcome, cargo};
use crate::tools;

pub(crate) fn run(write: bool) -> Outcome {
    tools::counts()?;
    check(write)
}

/// The same, where valgrind is there already.
pub(crate) fn check(write: bool) -> Outcome {
    let mut counting = cargo(["run", "--quiet", "--profile", "counts", "-p", "semel-counts"]);
    if write {
        counting.args(["--", "--write"]);
    }
    step::run("instruction counts", &mut counting)
}
