//! What happened to one operation: a line for each event, and a column for each place where one can happen.

use crate::run::Report;
use crate::trace::Place;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The lines of a trace that concern the operation of a violation: by its number in the plan, its ids, and what struck everybody. Empty where the
/// trace was not kept.
#[must_use]
pub fn timeline(report: &Report) -> String {
    let (Some(text), Some(violation)) = (&report.text, report.violations.first()) else {
        return String::new();
    };
    let names = names(text, violation);
    let concerns = |line: &&str| {
        let about = words(line).any(|word| names.contains(word));
        let everybody = !line.contains('#') && !words(line).any(is_id);
        about || everybody
    };
    let mut told = head();
    text.lines().filter(concerns).for_each(|line| told.push_str(&row(line)));
    told
}

/// What the operation of a violation is called: its number and its ids.
fn names<'t>(text: &'t str, violation: &'t str) -> BTreeSet<&'t str> {
    let is_name = |word: &&str| word.starts_with('#') || is_id(word);
    let mut names: BTreeSet<&str> = words(violation).filter(is_name).collect();
    // Lines that have one of the names may tell others, unless they are of many operations: those have no number.
    for _ in 0..2 {
        for line in text.lines().filter(|line| line.contains('#')) {
            if words(line).any(|word| names.contains(word)) {
                names.extend(words(line).filter(is_name));
            }
        }
    }
    names
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', ':', ','])
}

fn is_id(word: &str) -> bool {
    word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4
}

/// How wide the column of the time is.
const TIME: usize = 9;

fn head() -> String {
    let columns: Vec<_> = Place::ALL.iter().map(|place| place.as_str()).collect();
    format!("{:>TIME$}  {}\n", "s", columns.join("  "))
}

/// A line of the trace: its time, a mark in the column of its place, and what it says.
fn row(line: &str) -> String {
    let mut parts = line.trim_start().splitn(3, ' ');
    let mut part = || parts.next().unwrap_or_default();
    let (time, place, what) = (part(), part(), part());
    let mut row = format!("{time:>TIME$}  ");
    for column in Place::ALL {
        let mark = if column.as_str() == place { "*" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(row, "{mark:<width$}", width = column.as_str().len() + 2);
    }
    row + what + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Counts;
    use std::collections::BTreeMap;

    const ID: &str = "01900000-0000-7000-8000-000000000001";
    const OTHER: &str = "01900000-0000-7000-8000-000000000002";

    fn report(text: String, violation: &str) -> Report {
        Report {
            seed: 1,
            trace: (0, 0),
            text: Some(text),
            violations: vec![violation.to_owned()],
            struck: Vec::new(),
            counts: Counts::default(),
            answers: BTreeMap::new(),
            sometimes: BTreeMap::new(),
            is_freed: true,
        }
    }

    #[test]
    fn a_timeline_has_a_column_for_each_place_and_the_lines_of_one_operation() {
        let text = [
            "    0.010 clients #7 Plain to gateway 1".to_owned(),
            format!("    0.012 store {ID} process 1: nothing -> in_progress v1 attempt 1"),
            format!("    0.015 service #7 {ID} attempt 1 starts"),
            format!("    0.016 provider #7 {ID} attempt 1: provider Done"),
            format!("    0.017 provider #8 {OTHER} attempt 1: provider Done"),
            format!("    0.018 store {OTHER} process 1: in_progress -> completed v2 attempt 1"),
            "    0.020 faults gateway 1 is killed".to_owned(),
            format!("    9.000 operators {ID} attempt 1: operator finds Some(Charged)"),
            format!("    9.100 gateways #7 {ID} attempt 1: the handler panics"),
        ];
        let told =
            timeline(&report(text.join("\n"), &format!("P4 {ID} is failed, and the ledger has true of it")));
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines[0], "        s  clients  gateways  service  store  provider  operators  faults");
        assert_eq!(lines.len(), 1 + 7, "{told}");
        assert!(!told.contains(OTHER) && !told.contains("#8"), "{told}");
        // Each mark stands below the name of its column.
        for (line, place) in [
            (1, Place::Clients),
            (2, Place::Store),
            (3, Place::Service),
            (4, Place::Provider),
            (5, Place::Faults),
            (6, Place::Operators),
            (7, Place::Gateways),
        ] {
            assert_eq!(lines[line].find('*'), lines[0].find(place.as_str()), "{told}");
        }
        assert!(lines[1].ends_with("  #7 Plain to gateway 1"), "{told}");
    }

    #[test]
    fn a_run_whose_trace_was_not_kept_has_no_timeline() {
        assert_eq!(timeline(&Report { text: None, ..report(String::new(), "P1") }), "");
    }
}
