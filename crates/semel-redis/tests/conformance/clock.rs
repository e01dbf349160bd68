//! Clocks that tests move: the store's, and the tier's beside it.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use crate::server_clock;
use semel::Randomness;
use semel::clock::Clock;
use semel_conformance::Hands;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Wall clock and monotonic clock, as times since their beginnings.
#[derive(Clone, Default)]
pub(crate) struct Driven(Arc<Mutex<(Duration, Duration)>>);

impl Clock for Driven {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

impl Hands for Driven {
    fn forward(&self, by: Duration) {
        let mut clocks = self.0.lock().unwrap();
        *clocks = (clocks.0 + by, clocks.1 + by);
    }

    fn jump(&self, by: Duration) {
        self.0.lock().unwrap().0 += by;
    }

    fn come_back(&self, by: Duration) {
        self.0.lock().unwrap().0 -= by;
    }

    fn back(&self, by: Duration) {
        let mut clocks = self.0.lock().unwrap();
        clocks.0 = clocks.0.saturating_sub(by);
    }
}

impl Hands for server_clock::Driven {
    fn forward(&self, by: Duration) {
        self.pass(by);
    }

    fn jump(&self, by: Duration) {
        self.server.jump_blocking(by, false);
    }

    fn come_back(&self, by: Duration) {
        self.server.jump_blocking(by, true);
    }

    fn back(&self, by: Duration) {
        self.server.jump_blocking(by, true);
    }
}

/// The clock of a store, and of a tier that may be a second behind what the store's clock does without time passing.
#[derive(Clone)]
pub(crate) struct TierClock<C> {
    pub(crate) store: C,
    /// What has passed for the tier alone.
    passed: Arc<Mutex<Duration>>,
}

impl<C> TierClock<C> {
    pub(crate) fn of(store: C) -> Self {
        Self { store, passed: Arc::default() }
    }

    /// A step of the store's clock is known to the tier once the store's last answer is no longer recent: that second passes.
    fn a_second_passes(&self) {
        *self.passed.lock().unwrap() += Duration::from_secs(1);
    }
}

impl<C: Clock> Clock for TierClock<C> {
    fn wall(&self) -> SystemTime {
        self.store.wall()
    }

    fn monotonic(&self) -> Duration {
        self.store.monotonic()
    }

    fn boottime(&self) -> Duration {
        self.store.boottime() + *self.passed.lock().unwrap()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

impl<C: Hands> Hands for TierClock<C> {
    fn forward(&self, by: Duration) {
        self.store.forward(by);
    }

    fn jump(&self, by: Duration) {
        self.store.jump(by);
        self.a_second_passes();
    }

    fn come_back(&self, by: Duration) {
        self.store.come_back(by);
        self.a_second_passes();
    }

    fn back(&self, by: Duration) {
        self.store.back(by);
        self.a_second_passes();
    }
}

pub(crate) struct Random;

impl Randomness for Random {
    fn bits(&self) -> u128 {
        let half = || u128::from(RandomState::new().hash_one(0));
        half() << 64 | half()
    }
}
