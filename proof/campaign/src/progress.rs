//! How far a campaign has got, told while it runs.
#![allow(clippy::print_stderr, reason = "progress is told to whoever waits")]

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often whoever reads a log is told.
const IN_A_LOG: Duration = Duration::from_secs(60);
/// How often whoever looks at a terminal is.
const ON_A_TERMINAL: Duration = Duration::from_secs(1);

/// Counts of all rounds up to now.
pub(crate) struct Progress {
    what: String,
    of: u64,
    begun: Instant,
    operations: AtomicU64,
    /// Of the rounds that are over.
    faults: AtomicU64,
    violations: AtomicU64,
}

impl Progress {
    pub(crate) fn new(what: String, of: u64) -> Self {
        Self {
            what,
            of,
            begun: Instant::now(),
            operations: AtomicU64::default(),
            faults: AtomicU64::default(),
            violations: AtomicU64::default(),
        }
    }

    pub(crate) fn one_more(&self) {
        self.operations.fetch_add(1, Ordering::Relaxed);
    }

    /// A round is over.
    pub(crate) fn add(&self, faults: u64, violations: u64) {
        self.faults.fetch_add(faults, Ordering::Relaxed);
        self.violations.fetch_add(violations, Ordering::Relaxed);
    }

    /// Tells how far it has got, without end. `faults`: of the round that is under way.
    pub(crate) async fn watch(&self, faults: impl Fn() -> u32) {
        let terminal = std::io::stderr().is_terminal();
        loop {
            tokio::time::sleep(if terminal { ON_A_TERMINAL } else { IN_A_LOG }).await;
            let line = self.line(u64::from(faults()));
            if terminal {
                eprint!("\r\x1b[2K{line} ");
                let _ = std::io::stderr().flush();
            } else {
                eprintln!("{line}");
            }
        }
    }

    pub(crate) fn healing(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K{}: the faults end; everything is asked for again ", self.what);
            let _ = std::io::stderr().flush();
        }
    }

    /// Leaves the terminal's line to others.
    pub(crate) fn clear(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
    }

    fn line(&self, faults: u64) -> String {
        let done = self.operations.load(Ordering::Relaxed);
        let elapsed = self.begun.elapsed().as_secs_f64();
        let rate = done as f64 / elapsed.max(0.001);
        let left = self.of.saturating_sub(done) as f64 / rate.max(0.001);
        format!(
            "{}: {done} of {} operations, {rate:.0}/s, {} faults, {} violations, {:.0} min gone, {:.0} min to go",
            self.what,
            self.of,
            self.faults.load(Ordering::Relaxed) + faults,
            self.violations.load(Ordering::Relaxed),
            elapsed / 60.0,
            left / 60.0
        )
    }
}
