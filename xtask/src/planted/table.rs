//! What is told of planted bugs: a line each on the terminal, and a table in `proof/PLANTED.md`.

use super::Verdict;
use super::bug::Bug;
use super::check::Noticed;
use super::pairs::pair;
use crate::step::{self, Outcome, seconds};
use std::fmt::Write as _;
use std::fs;

const HEAD: &str = "# Planted bugs

Each of these mistakes is in the crates, behind a switch that only tests have (`crates/semel/src/planted`). Switched on alone, each is
noticed: the check that stands beside it passes without the bug and fails with it. Written by `cargo xtask prove planted`, each row by
the last run of its bug; `proof/README.md` says more.

The campaign that is paired with a bug (`xtask/src/planted/pairs.rs`: faults and their density, store, profile, scene, operations) has to notice it;
a bug without one cannot be seen from outside of the processes, or has not been noticed by a campaign of this length.

| bug | what it does | caught by | after | the campaign that has to notice it | did |
|---|---|---|---|---|---|
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

/// Writes the table, once every bug was caught. Those that were not tried this time keep their rows.
pub(super) fn write(verdicts: &[Verdict]) -> Outcome {
    let path = step::root().join("proof/PLANTED.md");
    let failed = |error| format!("{}: {error}", path.display());
    let last = fs::read_to_string(&path).map_err(failed)?;
    fs::write(&path, page(verdicts, &last)).map_err(failed)
}

fn page(verdicts: &[Verdict], last: &str) -> String {
    let row = |bug: &Bug| match verdicts.iter().find(|verdict| verdict.bug == *bug) {
        Some(verdict) => Some(row(verdict)),
        None => last.lines().find(|line| line.starts_with(&beginning(*bug))).map(str::to_owned),
    };
    let rows: Vec<String> = Bug::ALL.iter().filter_map(row).collect();
    format!("{HEAD}{}\n", rows.join("\n"))
}

fn beginning(bug: Bug) -> String {
    format!("| `{}` |", bug.name())
}

fn row(Verdict { bug, caught, campaign, .. }: &Verdict) -> String {
    let tests: Vec<_> = caught.iter().map(|(test, _)| format!("`{}` `{}`", test.place, test.name)).collect();
    let took: Vec<_> = caught.iter().map(|(_, took)| seconds(*took)).collect();
    let campaign = campaign.as_ref().map_or_else(|| "–".to_owned(), told);
    let pair = pair(*bug).map_or_else(|| "–".to_owned(), |pair| pair.to_string());
    let (tests, took) = (tests.join("<br>"), took.join("<br>"));
    format!("{} {} | {tests} | {took} | {pair} | {campaign} |", beginning(*bug), bug.what())
}

pub(super) fn told(noticed: &Noticed) -> String {
    match noticed {
        Noticed::After { operations, invariants, took } => {
            format!("{} in {operations} operations, {}", invariants.join(", "), seconds(*took))
        }
        Noticed::NotWithin(operations) => format!("not noticed in {operations} operations"),
        Noticed::NoVerdict(operations) => format!("came to no verdict in {operations} operations"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_that_was_tried_has_a_new_row_and_the_others_keep_theirs() {
        let [first, second] = [Bug::ALL[0], Bug::ALL[1]];
        let (old, kept) = (format!("{} old |", beginning(first)), format!("{} kept |", beginning(second)));
        let tried = Verdict { campaign: Some(Noticed::NotWithin(100)), ..Verdict::of(first) };
        let page = page(&[tried], &format!("By hand.\n\n{old}\n{kept}\n"));
        let rows = page.strip_prefix(HEAD).unwrap();
        assert!(rows.starts_with(&beginning(first)) && rows.ends_with(&format!("\n{kept}\n")), "{page}");
        assert!(rows.contains("not noticed in 100 operations") && !page.contains(&old), "{page}");
    }
}
