//! The clocks of the machine that all gateways run on. They go by tokio's clock, which is virtual.

use semel::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// A machine: a wall clock that can step and drift, and two steady clocks. Clones are the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// When tokio's clock began to move this one; `None`: it is moved by hand alone.
    begun: Option<Instant>,
    /// By how many milliseconds the wall clock is ahead of the true time.
    ahead: AtomicI64,
    /// By how many millionths it is too fast.
    drift: AtomicI64,
    /// How many milliseconds have passed besides those of tokio's clock.
    passed: AtomicI64,
    synchronised: AtomicBool,
}

/// What the wall clock says in the beginning, in seconds since 1970.
const EPOCH: u64 = 1_800_000_000;

/// How long the machine has been up by then.
const UPTIME: Duration = Duration::from_secs(86_400);

impl Machine {
    /// A machine whose clocks are right.
    #[must_use]
    pub fn new() -> Self {
        Self::since(Some(Instant::now()))
    }

    /// The same, with clocks that stand still until they are moved.
    #[must_use]
    pub fn by_hand() -> Self {
        Self::since(None)
    }

    fn since(begun: Option<Instant>) -> Self {
        Self(Arc::new(Inner {
            begun,
            ahead: AtomicI64::new(0),
            drift: AtomicI64::new(0),
            passed: AtomicI64::new(0),
            synchronised: AtomicBool::new(true),
        }))
    }

    /// Sets the wall clock ahead, or back. Nobody is told that it is right.
    pub fn step(&self, millis: i64) {
        self.0.ahead.fetch_add(millis, Relaxed);
        self.0.synchronised.store(false, Relaxed);
    }

    /// Has the wall clock run too fast by so many millionths.
    pub fn drift(&self, millionths: i64) {
        self.0.drift.store(millionths, Relaxed);
    }

    /// Lets time pass on all clocks at once.
    pub fn forward(&self, by: Duration) {
        self.0.passed.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Relaxed);
    }

    /// Puts the wall clock right.
    pub fn put_right(&self) {
        self.0.ahead.store(0, Relaxed);
        self.0.drift.store(0, Relaxed);
        self.0.synchronised.store(true, Relaxed);
    }

    /// The true time since the beginning.
    fn elapsed(&self) -> Duration {
        self.0.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
            + Duration::from_millis(self.0.passed.load(Relaxed).unsigned_abs())
    }
}

impl Default for Machine {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Machine {
    fn wall(&self) -> SystemTime {
        let elapsed = i64::try_from(self.elapsed().as_millis()).unwrap_or(i64::MAX);
        let drifted = elapsed.saturating_mul(self.0.drift.load(Relaxed)) / 1_000_000;
        let millis = elapsed.saturating_add(drifted).saturating_add(self.0.ahead.load(Relaxed));
        let epoch = SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH);
        let by = Duration::from_millis(millis.unsigned_abs());
        if millis < 0 { epoch - by } else { epoch + by }
    }

    fn monotonic(&self) -> Duration {
        UPTIME + self.elapsed()
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        Some(self.0.synchronised.load(Relaxed))
    }
}
