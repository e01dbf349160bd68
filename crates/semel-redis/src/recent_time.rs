//! The store's time between two of its answers.

use semel::{Now, Timestamp};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an answer of the store says what time it is. A clock that the store believes may step; this long a hit may not know.
pub(crate) const RECENT: Duration = Duration::from_secs(1);

/// What time the store would say it is, by its last answer and the time since boot that has passed.
#[derive(Debug, Default)]
pub(crate) struct RecentTime(Mutex<Option<Observed>>);

#[derive(Clone, Copy, Debug)]
struct Observed {
    now: Now,
    /// By the time since boot: when the question went out, and when the answer was there. The store's clock was read in between.
    asked: Duration,
    answered: Duration,
}

/// The store's time, as far as it can be known without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Estimate {
    /// It is no earlier than this.
    pub(crate) now: Now,
    /// It is no later than this, by either end of a clock hold.
    pub(crate) latest: Timestamp,
    /// It is based on an answer so old that the store should be asked again soon.
    pub(crate) is_ageing: bool,
}

impl RecentTime {
    /// Takes note of an answer.
    pub(crate) fn observe(&self, now: Now, asked: Duration, answered: Duration) {
        let mut observed = self.lock();
        // Answers overlap. The one that was asked for last is the best; time never goes back in any case.
        if observed.is_none_or(|before| asked >= before.asked && now.earliest >= before.now.earliest) {
            *observed = Some(Observed { now, asked, answered });
        }
    }

    /// Forgets what it was: the store's clock may be another one from now on.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    /// The store's time at this time since boot; `None` without a recent answer.
    pub(crate) fn at(&self, boottime: Duration) -> Option<Estimate> {
        let Observed { now, asked, answered } = (*self.lock())?;
        let most = boottime.checked_sub(asked)?;
        let least = boottime.saturating_sub(answered);
        (most < RECENT).then(|| Estimate {
            now: Now {
                earliest: now.earliest.plus(least),
                latest: now.latest.plus(least),
                steady: now.steady.saturating_add(least),
                since: now.since,
            },
            // Rounded up: moments are milliseconds.
            latest: now.latest.plus(most).plus(Duration::from_millis(1)),
            is_ageing: most * 2 >= RECENT,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Observed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn now(millis: i64) -> Now {
        Timestamp::from_millis(millis).into()
    }

    #[test]
    fn time_goes_on_between_answers_as_an_interval() {
        let time = RecentTime::default();
        assert_eq!(time.at(ms(5)), None, "nothing is known yet");
        time.observe(now(1_000), ms(100), ms(110));
        let estimate = time.at(ms(150)).unwrap();
        assert_eq!(estimate.now.earliest, Timestamp::from_millis(1_040));
        assert_eq!(estimate.latest, Timestamp::from_millis(1_051));
        assert!(!estimate.is_ageing && time.at(ms(700)).unwrap().is_ageing);
    }

    #[test]
    fn what_is_not_recent_says_nothing() {
        let time = RecentTime::default();
        time.observe(now(1_000), ms(100), ms(110));
        assert!(time.at(ms(1_099)).is_some() && time.at(ms(1_100)).is_none());
        time.observe(now(2_000), ms(1_100), ms(1_101));
        assert!(time.at(ms(1_100)).is_some());
        time.forget();
        assert_eq!(time.at(ms(1_101)), None);
    }

    #[test]
    fn an_answer_that_overtook_another_one_is_not_replaced_by_it() {
        let time = RecentTime::default();
        time.observe(now(1_050), ms(150), ms(160));
        time.observe(now(1_000), ms(100), ms(170));
        assert_eq!(time.at(ms(170)).unwrap().now.earliest, Timestamp::from_millis(1_060));
    }

    #[test]
    fn during_a_hold_the_latest_time_counts() {
        let time = RecentTime::default();
        let held = Now { latest: Timestamp::from_millis(9_000), ..now(1_000) };
        time.observe(held, ms(0), ms(0));
        assert_eq!(time.at(ms(10)).unwrap().latest, Timestamp::from_millis(9_011));
    }
}
