//! A failing run explains itself: the fewest faults that it takes, and what happened to one operation.

use crate::fault::Struck;
use crate::run::{Report, run};
use crate::setup::Setup;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A failing run with fewer faults.
#[derive(Debug)]
pub struct Shrunk {
    /// What still fails.
    pub setup: Setup,
    /// What it came to, with its trace.
    pub report: Report,
    /// How many runs it took.
    pub tries: u32,
}

/// Takes faults away, larger parts first, as long as the run still breaks the same promise, and no longer than `limit`.
///
/// # Errors
/// The runtime cannot be built.
pub fn shrink(setup: &Setup, report: Report, limit: Duration) -> Result<Shrunk, std::io::Error> {
    let begun = Instant::now();
    let promise = promise(&report);
    let mut best = Shrunk { setup: setup.clone(), report, tries: 0 };
    let mut parts = 2;
    while begun.elapsed() < limit {
        let struck = best.report.struck.clone();
        if struck.is_empty() {
            break;
        }
        let size = struck.len().div_ceil(parts);
        let smaller = struck.chunks(size).find_map(|part| {
            if begun.elapsed() >= limit {
                return None;
            }
            best.tries += 1;
            let allowed: BTreeSet<Struck> = struck.iter().filter(|it| !part.contains(it)).copied().collect();
            let tried = Setup { allowed: Some(allowed), ..setup.clone() };
            let report = run(&tried).ok()?;
            (self::promise(&report) == promise && report.struck.len() < struck.len())
                .then_some((tried, report))
        });
        match smaller {
            Some((setup, report)) => {
                (best.setup, best.report) = (setup, report);
                parts = 2.max(parts - 1);
            }
            None if size == 1 => break,
            None => parts = (parts * 2).min(struck.len()),
        }
    }
    best.setup.keep_text = true;
    best.report = run(&best.setup)?;
    Ok(best)
}

/// The command that runs it again.
#[must_use]
pub fn again(setup: &Setup) -> String {
    let only: String = setup.only.iter().map(|fault| format!(" --only {}", fault.as_str())).collect();
    let density = setup.density.map_or(String::new(), |density| format!(" --density {density}"));
    format!(
        "cargo xtask prove simulate --seed {} --operations {}{only}{density}",
        setup.seed, setup.operations
    )
}

/// The promise that a run breaks first.
fn promise(report: &Report) -> Option<String> {
    report.violations.first().and_then(|violation| violation.split(' ').next()).map(str::to_owned)
}

/// The lines of a trace that concern the operation of a violation: by its number in the plan, its ids, and what struck everybody.
#[must_use]
pub fn timeline(report: &Report) -> String {
    let (Some(text), Some(violation)) = (&report.text, report.violations.first()) else {
        return String::new();
    };
    let is_id = |word: &str| word.len() == 36 && word.bytes().filter(|byte| *byte == b'-').count() == 4;
    let mut names: BTreeSet<String> = violation
        .split([' ', ':', ','])
        .filter(|word| word.starts_with('#') || is_id(word))
        .map(str::to_owned)
        .collect();
    // Lines that have one of the names may tell others, unless they are of many operations: those have no number.
    for _ in 0..2 {
        for line in text.lines().filter(|line| line.contains('#')) {
            let words: Vec<&str> = line.split([' ', ':', ',']).collect();
            if words.iter().any(|word| names.contains(*word)) {
                names.extend(
                    words
                        .iter()
                        .filter(|word| word.starts_with('#') || is_id(word))
                        .map(|word| (*word).to_owned()),
                );
            }
        }
    }
    let concerns = |line: &&str| {
        let about = line.split([' ', ':', ',']).any(|word| names.contains(word));
        let everybody = !line.contains('#') && !line.split([' ', ':', ',']).any(is_id);
        about || everybody
    };
    text.lines().filter(concerns).map(|line| format!("{line}\n")).collect()
}
