//! Everything that is left to chance: streams of random numbers, each from the seed and a name.

use semel::Randomness;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One stream of random numbers. Clones draw from the same stream.
#[derive(Clone, Debug)]
pub struct Dice(Arc<Mutex<fastrand::Rng>>);

impl Dice {
    /// The stream of this name: what one part draws does not move what another part draws.
    #[must_use]
    pub fn of(seed: u64, name: &str) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(mixed(seed, name.bytes().map(u64::from))))))
    }

    /// A number below `limit`, which is not zero.
    #[must_use]
    pub fn below(&self, limit: u64) -> u64 {
        self.rng().u64(..limit)
    }

    /// Whether something happens that happens this often.
    #[must_use]
    pub fn chance(&self, probability: f64) -> bool {
        self.rng().f64() < probability
    }

    /// A duration from `least` to `most`, in milliseconds.
    #[must_use]
    pub fn millis(&self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.rng().u64(least..=most))
    }

    /// A number from `least` to `most`, small ones as often as those ten times as large.
    #[must_use]
    pub fn log_uniform(&self, least: f64, most: f64) -> f64 {
        let exponent = self.rng().f64() * (most / least).ln();
        least * exponent.exp()
    }

    /// One of these.
    #[must_use]
    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        let index = self.rng().usize(..from.len());
        from[index]
    }

    fn rng(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Randomness for Dice {
    fn bits(&self) -> u128 {
        self.rng().u128(..)
    }
}

/// A number that depends on all of these (splitmix64).
pub(crate) fn mixed(seed: u64, parts: impl IntoIterator<Item = u64>) -> u64 {
    let step = |state: u64| {
        let mut mixed = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    parts.into_iter().fold(step(seed), |state, part| step(state ^ part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_alone() {
        let first = |seed, name| Dice::of(seed, name).bits();
        assert_eq!(first(1, "network"), first(1, "network"));
        assert_ne!(first(1, "network"), first(2, "network"));
        assert_ne!(first(1, "network"), first(1, "store"));
    }
}
