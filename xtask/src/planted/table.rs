//! What is told of planted bugs: a line each on the terminal, and a table in `proof/PLANTED.md`.

use super::Verdict;
use super::check::Noticed;
use crate::step::{self, Outcome, seconds};
use std::fmt::Write as _;
use std::fs;

const HEAD: &str = "# Planted bugs

Each of these mistakes is in the crates, behind a switch that only tests have (`crates/semel/src/planted`). Switched on alone, each is
noticed: the check that stands beside it passes without the bug and fails with it. Written by `cargo xtask prove planted`;
`proof/README.md` says more.

| bug | what it does | caught by | after | the campaign |
|---|---|---|---|---|
";

/// One bug, on the terminal.
pub(super) fn line(verdict: &Verdict) -> String {
    let mut text = format!("    {}", step::in_bold(verdict.bug.name()));
    // Writing to a string does not fail.
    for (test, took) in &verdict.caught {
        let _ = write!(text, "\n      caught by {test}, {}", seconds(*took));
    }
    for test in &verdict.missed {
        let _ = write!(text, "\n      {} by {test}", step::in_bold("NOT CAUGHT"));
    }
    text
}

/// Writes the table, once every bug was caught.
pub(super) fn write(verdicts: &[Verdict]) -> Outcome {
    let mut text = HEAD.to_owned();
    for Verdict { bug, caught, campaign, .. } in verdicts {
        let (name, what) = (bug.name(), bug.what());
        let tests: Vec<_> =
            caught.iter().map(|(test, _)| format!("`{}` `{}`", test.place, test.name)).collect();
        let took: Vec<_> = caught.iter().map(|(_, took)| seconds(*took)).collect();
        let campaign = campaign.as_ref().map_or_else(|| "not tried".to_owned(), told);
        let (tests, took) = (tests.join("<br>"), took.join("<br>"));
        let _ = writeln!(text, "| `{name}` | {what} | {tests} | {took} | {campaign} |");
    }
    let path = step::root().join("proof/PLANTED.md");
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn told(noticed: &Noticed) -> String {
    match noticed {
        Noticed::After { operations, invariants, took } => {
            format!("{} in {operations} operations, {}", invariants.join(", "), seconds(*took))
        }
        Noticed::NotWithin(operations) => format!("not noticed in {operations} operations"),
    }
}
