//! Fail points at every call of the store: before and after it, a panic, an error or a delay, once or each time.

use std::collections::BTreeSet;
use std::path::Path;

const CALLS: [&str; 14] = [
    "create",
    "swap",
    "remove",
    "read",
    "find",
    "history",
    "list",
    "count_live",
    "live_operations",
    "due",
    "drop_answers",
    "purge",
    "remember",
    "recall",
];
const SIDES: [&str; 2] = ["before", "after"];
/// The delays are longer than the time that the store has, and shorter.
const ACTIONS: [&str; 4] = ["panic", "return(error)", "return(delay:150)", "return(delay:2500)"];
const TIMES: [&str; 2] = ["1*", ""];

/// How many there are.
pub(crate) const ALL: usize = CALLS.len() * SIDES.len() * ACTIONS.len() * TIMES.len();

/// The `number`th, as the variable `FAILPOINTS` has it. Neighbours are of different calls.
pub(crate) fn point(number: usize) -> String {
    let (number, call) = (number % ALL / CALLS.len(), CALLS[number % CALLS.len()]);
    let (number, side) = (number / SIDES.len(), SIDES[number % SIDES.len()]);
    let (number, times) = (number / TIMES.len(), TIMES[number % TIMES.len()]);
    format!("store::{call}::{side}={times}{}", ACTIONS[number % ACTIONS.len()])
}

/// The points that a process says it came to, in its log.
pub(crate) fn reached(log: &Path) -> BTreeSet<String> {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines = text
        .lines()
        .filter(|line| line.contains("fail point was triggered") || line.contains("failpoint store::"));
    let points = lines.filter_map(|line| {
        let from = line.find("store::")?;
        let name = &line[from..];
        Some(
            name[..name
                .find(|other: char| !other.is_alphanumeric() && !":_".contains(other))
                .unwrap_or(name.len())]
                .to_owned(),
        )
    });
    points.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_number() {
        let all: BTreeSet<String> = (0..ALL).map(point).collect();
        assert_eq!(all.len(), ALL);
        assert!(all.contains("store::swap::after=1*return(error)"), "{all:?}");
    }

    #[test]
    fn what_was_reached_is_found_in_a_log() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines = "WARN semel: a fail point was triggered point=\"store::due::before\"\nfailpoint store::swap::after panic\n";
        std::fs::write(&log, lines).unwrap();
        assert_eq!(reached(&log), ["store::due::before", "store::swap::after"].map(str::to_owned).into());
    }
}
