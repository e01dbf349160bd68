//! What is told of planted bugs: a line each on the terminal, and a table in `proof/PLANTED.md`.

use super::Verdict;
use super::check::Noticed;
use super::patch::{self, Patch};
use crate::step::{self, Outcome, seconds};
use std::fmt::Write as _;
use std::fs;

const HEAD: &str = "# Planted bugs

Each of these mistakes is a patch in [`proof/planted`](planted), with a header that names the checks which have to notice it. Applied alone to
a copy of the sources, each is noticed: the tests beside it pass without the bug and fail with it, and so does the campaign, by the settings that stand there
(faults, one for how many operations, store, profile, scene, within how many operations), and the simulator, within the number of operations that stands there, by these faults, or by all of them if none is named. Written by `cargo xtask prove planted`, each row by the last run of its
bug; `proof/README.md` says more.

Where no campaign, or not the simulator, can notice a bug, its header says why.

| bug | what it does | caught by | after | the simulator | the campaign that has to notice it | did |
|---|---|---|---|---|---|---|
";

/// One bug, on the terminal.
pub(super) fn lines(verdict: &Verdict) -> String {
    let mut text = format!("    {}", step::in_bold(&verdict.patch.name));
    // Writing to a string does not fail.
    for (test, took) in &verdict.caught {
        let _ = write!(text, "\n      caught by {test}, {}", seconds(*took));
    }
    for test in &verdict.missed {
        let _ = write!(text, "\n      {} by {test}", step::in_bold("NOT CAUGHT"));
    }
    if let Some(noticed) = &verdict.simulator {
        let _ = write!(text, "\n      the simulator: {}", told(noticed));
    }
    if let Some(noticed) = &verdict.campaign {
        let _ = write!(text, "\n      the campaign: {}", told(noticed));
    }
    text
}

/// Renews the row of a bug. The others keep theirs.
pub(super) fn write(verdict: &Verdict) -> Outcome {
    renew(verdict, |last| row(verdict, last))
}

/// Renews what the row of a bug says of the simulator.
pub(super) fn write_simulated(verdict: &Verdict) -> Outcome {
    renew(verdict, |last| last.map_or_else(|| row(verdict, None), |last| with_simulator(verdict, last)))
}

fn renew(verdict: &Verdict, row: impl Fn(Option<&str>) -> String) -> Outcome {
    let path = step::root().join("proof/PLANTED.md");
    let failed = |error| format!("{}: {error}", path.display());
    let last = fs::read_to_string(&path).map_err(failed)?;
    let names: Vec<String> = patch::all()?.into_iter().map(|patch| patch.name).collect();
    fs::write(&path, page(&verdict.patch.name, &names, &last, row)).map_err(failed)
}

/// The page with a new row for the bug of this name.
fn page(renewed: &str, names: &[String], last: &str, new: impl Fn(Option<&str>) -> String) -> String {
    let row = |name: &String| {
        let last = last.lines().find(|line| line.starts_with(&beginning(name)));
        if renewed == name { Some(new(last)) } else { last.map(str::to_owned) }
    };
    let rows: Vec<String> = names.iter().filter_map(row).collect();
    format!("{HEAD}{}\n", rows.join("\n"))
}

fn beginning(name: &str) -> String {
    format!("| `{name}` |")
}

fn row(Verdict { patch, caught, missed, campaign, simulator }: &Verdict, last: Option<&str>) -> String {
    let name = |place: &str, name: &str| format!("`{place}` `{name}`");
    let caught_by = caught.iter().map(|(test, _)| name(&test.place, &test.name));
    let tests: Vec<_> = caught_by.chain(missed.iter().map(|test| name(&test.place, &test.name))).collect();
    let took: Vec<_> =
        caught.iter().map(|(_, took)| seconds(*took)).chain(missed.iter().map(|_| "missed".into())).collect();
    let why = patch.no_campaign.as_deref().unwrap_or("–");
    let settings = patch.campaign.as_ref().map_or_else(|| why.to_owned(), |campaign| format!("`{campaign}`"));
    let did = match (&patch.campaign, campaign) {
        (None, _) => "–".to_owned(),
        (Some(_), Some(noticed)) => told(noticed),
        // Not tried this time.
        (Some(_), None) => last.and_then(last_cell).unwrap_or("not tried").to_owned(),
    };
    let simulated = simulated(patch, simulator.as_ref());
    let (tests, took) = (tests.join("<br>"), took.join("<br>"));
    format!(
        "{} {} | {tests} | {took} | {simulated} | {settings} | {did} |",
        beginning(&patch.name),
        patch.what
    )
}

fn simulated(patch: &Patch, noticed: Option<&Noticed>) -> String {
    match (&patch.simulator, noticed) {
        (None, _) => patch.no_simulator.as_deref().unwrap_or("–").to_owned(),
        (Some(settings), Some(noticed)) => format!("`{settings}`: {}", told(noticed)),
        (Some(settings), None) => format!("`{settings}`"),
    }
}

/// The row as it was, with what the simulator says now.
fn with_simulator(verdict: &Verdict, last: &str) -> String {
    let mut cells: Vec<_> = last.split(" | ").map(str::to_owned).collect();
    if let Some(cell) = cells.get_mut(4) {
        *cell = simulated(&verdict.patch, verdict.simulator.as_ref());
    }
    cells.join(" | ")
}

fn last_cell(row: &str) -> Option<&str> {
    row.trim_end().strip_suffix('|')?.rsplit('|').next().map(str::trim)
}

pub(super) fn told(noticed: &Noticed) -> String {
    match noticed {
        Noticed::After { operations, invariants, took } => {
            format!("{} in {operations} operations, {}", invariants.join(", "), seconds(*took))
        }
        Noticed::NotWithin(operations) => format!("noticed nothing in {operations} operations"),
        Noticed::NoVerdict(operations) => format!("came to no verdict in {operations} operations"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_table_agrees_with_the_headers_of_the_patches() {
        let table = fs::read_to_string(step::root().join("proof/PLANTED.md")).unwrap();
        let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
        let patches = patch::all().unwrap();
        assert!(
            table.starts_with(HEAD) && rows.len() == patches.len(),
            "{} rows, {} patches",
            rows.len(),
            patches.len()
        );
        for (patch, there) in patches.iter().zip(rows) {
            let name = &patch.name;
            let wanted = row(&Verdict::of(patch.clone()), None);
            let cells = |row: &str| row.split(" | ").map(str::to_owned).collect::<Vec<_>>();
            let (wanted, there) = (cells(&wanted), cells(there));
            let [said_name, what, tests, _took, simulator, campaign, _did] = &there[..] else {
                panic!("{name}: {} cells", there.len())
            };
            assert_eq!([said_name, what, campaign], [&wanted[0], &wanted[1], &wanted[5]], "{name}");
            assert!(simulator.starts_with(&wanted[4]), "{name}: {simulator}");
            let named: Vec<String> =
                patch.tests.iter().map(|test| format!("`{}` `{}`", test.place, test.name)).collect();
            assert_eq!(*tests, named.join("<br>"), "{name}");
        }
    }

    #[test]
    fn a_bug_that_was_tried_has_a_new_row_and_the_others_keep_theirs() {
        let mut patches = patch::all().unwrap().into_iter().filter(|patch| patch.campaign.is_some());
        let (first, second) = (patches.next().unwrap(), patches.next().unwrap());
        let names = [first.name.clone(), second.name.clone()];
        let old = format!("{} old | I1 in 100 |", beginning(&first.name));
        let kept = format!("{} kept |", beginning(&second.name));
        let last = format!("By hand.\n\n{old}\n{kept}\n");
        let tried = Verdict { campaign: Some(Noticed::NotWithin(100)), ..Verdict::of(first.clone()) };
        let written = page(&first.name, &names, &last, |last| row(&tried, last));
        let rows = written.strip_prefix(HEAD).unwrap();
        assert!(
            rows.starts_with(&beginning(&first.name)) && rows.ends_with(&format!("\n{kept}\n")),
            "{written}"
        );
        assert!(rows.contains("noticed nothing in 100 operations") && !written.contains(&old), "{written}");
        let by_tests_alone = page(&first.name, &names, &last, |last| row(&Verdict::of(first.clone()), last));
        assert!(by_tests_alone.contains("| I1 in 100 |"), "{by_tests_alone}");
    }

    #[test]
    fn what_the_simulator_says_is_renewed_alone() {
        let simulated = |patch: &Patch| patch.simulator.is_some() && patch.campaign.is_some();
        let patch = patch::all().unwrap().into_iter().find(simulated).unwrap();
        let noticed = Noticed::After { operations: 450, invariants: vec!["P1".into()], took: Duration::ZERO };
        let last =
            row(&Verdict { campaign: Some(Noticed::NotWithin(7)), ..Verdict::of(patch.clone()) }, None);
        let renewed = with_simulator(&Verdict { simulator: Some(noticed), ..Verdict::of(patch) }, &last);
        assert!(renewed.contains(": P1 in 450 operations, ") && renewed.contains("noticed nothing in 7"));
        assert_eq!(renewed.split(" | ").count(), last.split(" | ").count());
    }
}
