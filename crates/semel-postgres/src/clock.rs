//! What time it is: the server's clock, which all instances share, guarded by this process's own steady clock.
//!
//! Every statement takes `clock_timestamp()` once and counts all its moments from it. A server's clock can be set back, and
//! after a failover it is another machine's, which may be some milliseconds behind. So each statement is told the highest time
//! that this handle has been answered, and does not say an earlier one, unless the clock is behind by more than a minute: that
//! is a clock that was wrong before, and standing still until it comes back could take years.
//!
//! A clock that jumps ahead while this process runs is not believed by it: what it is answered is judged by the earliest time, which goes
//! on by `CLOCK_BOOTTIME`, and it purges nothing. What the server stamps counts from its own clock, the latest time. The hold is this
//! handle's own: docs/decisions/postgres-time.md says what that leaves open.

use semel::clock::{Clock, ClockReport, Keeper, Mark, Readings, SystemClock, Terms};
use semel::{Now, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// By how many milliseconds the server's clock may be behind what was told before it is followed back. The statements have the
/// same number.
const BELIEVED: i64 = 60_000;

/// An answer may have taken this long.
const SLOWEST: Duration = Duration::from_secs(60);

/// The server's clock and the wall clock of this machine agree if they differ by no more milliseconds than this.
const AGREE: u64 = 5_000;

/// The highest time that a handle was told, and what it believes of it. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct HighWater {
    highest: Arc<AtomicI64>,
    keeper: Arc<Mutex<Keeper>>,
}

impl HighWater {
    pub(crate) fn new(terms: Terms) -> Self {
        // Behind every clock: the first answer is the server's own.
        Self { highest: Arc::new(AtomicI64::new(0)), keeper: Arc::new(Mutex::new(Keeper::new(terms, 1))) }
    }

    /// What the next statement does not go back behind.
    pub(crate) fn floor(&self) -> i64 {
        self.highest.load(Ordering::Acquire)
    }

    /// The time that a statement told.
    pub(crate) fn told(&self, now: i64) -> Now {
        // Answers may come out of order; but a clock that was wrong and is right again is followed.
        let follow = |floor: i64| (now > floor || floor - now > BELIEVED).then_some(now);
        let _stays = self.highest.fetch_update(Ordering::AcqRel, Ordering::Acquire, follow);
        let mut keeper = self.keeper();
        let (boottime, monotonic) = (SystemClock.boottime(), SystemClock.monotonic());
        let sent = boottime.saturating_sub(SLOWEST);
        let readings = Readings { claimed: now, sent, boottime, monotonic, told: None };
        let told = keeper.judge(Mark::NONE, &readings);
        drop(keeper);
        if let Some(turn) = told.turn {
            tracing::warn!(?turn, "the server's clock");
        }
        // Set back, the server's own time is what leases are stamped with.
        let server = Timestamp::from_millis(now);
        let earliest = if told.mark.is_held() { told.now.earliest.min(server) } else { server };
        Now { earliest, latest: server, ..told.now }
    }

    /// Ends a hold: the time that the server claims is the right one.
    pub(crate) fn accept(&self) {
        let mut keeper = self.keeper();
        *keeper = Keeper::new(keeper.terms(), 1);
    }

    /// Ends a hold once this machine's kernel has reported a synchronised clock for long enough, and the server's clock agrees with that.
    /// Whether a hold is open still.
    pub(crate) fn is_held(&self, now: Now) -> bool {
        if !now.is_held() {
            return false;
        }
        let agrees = SystemClock.wall_millis().abs_diff(now.latest.as_millis()) <= AGREE;
        let synchronised = agrees && SystemClock.synchronised() == Some(true);
        let ended = self.keeper().watch(synchronised, SystemClock.boottime(), SLOWEST * 2);
        if ended {
            self.accept();
        }
        !ended
    }

    pub(crate) fn report(&self, now: Now) -> ClockReport {
        let keeper = self.keeper();
        let mut report = ClockReport::trusted(now.earliest, keeper.terms());
        (report.latest, report.claimed) = (now.latest, now.latest);
        report.synchronised = SystemClock.synchronised();
        report.synchronised_for = keeper.watched_for();
        report
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        // A few numbers that are each valid at any time.
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000;

    #[test]
    fn a_small_step_back_is_not_followed_and_a_large_one_is() {
        let high = HighWater::new(Terms::default());
        high.told(1_000_000);
        high.told(999_000);
        assert_eq!(high.floor(), 1_000_000);
        high.told(900_000);
        assert_eq!(high.floor(), 900_000);
    }

    #[test]
    fn a_server_whose_clock_jumps_ahead_is_not_believed_until_somebody_accepts_it() {
        let high = HighWater::new(Terms::default());
        let noon = 1_800_000_000_000;
        assert!(!high.told(noon).is_held());
        let held = high.told(noon + 24 * HOUR);
        assert!(held.is_held() && held.earliest.as_millis() < noon + HOUR, "{held:?}");
        assert_eq!(held.latest.as_millis(), noon + 24 * HOUR);
        // It comes back.
        assert!(!high.told(noon + 1_000).is_held());
        assert!(high.told(noon + 24 * HOUR).is_held());
        high.accept();
        let accepted = high.told(noon + 24 * HOUR);
        assert!(!accepted.is_held() && accepted.steady < Duration::from_secs(60), "{accepted:?}");
        // Set back, it is followed, and no lease is over that was stamped by it.
        assert_eq!(high.told(noon).earliest.as_millis(), noon);
    }
}
