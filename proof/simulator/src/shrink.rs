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
