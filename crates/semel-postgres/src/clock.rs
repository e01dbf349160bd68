//! What time it is: the server's clock, which all instances share.
//!
//! Every statement takes `clock_timestamp()` once and counts all its moments from it. A server's clock can be set back, and
//! after a failover it is another machine's, which may be some milliseconds behind. So each statement is told the highest time
//! that this handle has been answered, and does not say an earlier one, unless the clock is behind by more than a minute: that
//! is a clock that was wrong before, and standing still until it comes back could take years.

use semel::Timestamp;
use semel::planted::{self, Bug};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// By how many milliseconds the server's clock may be behind what was told before it is followed back. The statements have the
/// same number.
const BELIEVED: i64 = 60_000;

/// The highest time that a handle was told. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct HighWater(Arc<AtomicI64>);

impl Default for HighWater {
    fn default() -> Self {
        // Behind every clock: the first answer is the server's own.
        Self(Arc::new(AtomicI64::new(0)))
    }
}

impl HighWater {
    /// What the next statement does not go back behind.
    pub(crate) fn floor(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    /// The time that a statement told.
    pub(crate) fn told(&self, now: i64) -> Timestamp {
        // Answers may come out of order; but a clock that was wrong and is right again is followed.
        let follow = |floor: i64| (now > floor || floor - now > BELIEVED).then_some(now);
        let _stays = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, follow);
        Timestamp::from_millis(if planted::bug(Bug::LocalClock) { planted::local_millis() } else { now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_step_back_is_not_followed_and_a_large_one_is() {
        let high = HighWater::default();
        high.told(1_000_000);
        high.told(999_000);
        assert_eq!(high.floor(), 1_000_000);
        high.told(900_000);
        assert_eq!(high.floor(), 900_000);
    }
}
