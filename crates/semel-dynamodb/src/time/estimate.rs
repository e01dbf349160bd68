//! The service's time as an interval: what the dates of its answers leave possible.

use std::time::Duration;

/// By how much two clocks that are kept in order part at most, in parts of a million.
const DRIFT: i64 = 200;

/// Servers of one service disagree by no more than this, in milliseconds. What is further off is another time.
const DISAGREE: i64 = 500;

/// How far the service's clock is ahead of this machine's steady one: at least `low`, at most `high` milliseconds.
///
/// A `Date` was written after the request was sent and before the answer was there, and its fraction of a second is cut off. So one answer says
/// it within a second and the round trip; what several answers leave possible together is narrower: about a round trip, once one of them
/// was close to the turn of a second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Estimate {
    low: i64,
    high: i64,
    /// When it was made, by the steady clock.
    at: Duration,
}

impl Estimate {
    /// What one answer says: its date, which is later by at most `resolution`, and when its request was sent and itself received.
    pub(crate) fn of(date: i64, resolution: i64, sent: Duration, received: Duration) -> Self {
        let low = date.saturating_sub(up(received));
        let high = date.saturating_add(resolution).saturating_sub(down(sent)).max(low);
        Self { low, high, at: received }
    }

    /// What both say together.
    pub(crate) fn and(self, new: Self) -> Self {
        let passed = down(new.at.saturating_sub(self.at));
        let drift = passed.saturating_mul(DRIFT) / 1_000_000;
        let (low, high) = (self.low.saturating_sub(drift), self.high.saturating_add(drift));
        let at = new.at.max(self.at);
        if new.low > high {
            return if new.low - high > DISAGREE { new } else { Self { low: high, high: new.low, at } };
        }
        if new.high < low {
            return if low - new.high > DISAGREE { new } else { Self { low: new.high, high: low, at } };
        }
        Self { low: low.max(new.low), high: high.min(new.high), at }
    }

    /// The earliest time that it may be now.
    pub(crate) fn earliest(&self, now: Duration) -> i64 {
        self.low.saturating_add(down(now))
    }

    /// By how much it may be later.
    pub(crate) fn width(&self) -> Duration {
        Duration::from_millis((self.high - self.low).max(0).unsigned_abs())
    }
}

fn down(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn up(duration: Duration) -> i64 {
    let rounded = duration.as_nanos().div_ceil(1_000_000);
    i64::try_from(rounded).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// A service whose clock is ahead by 5 000 000 ms, asked at `sent`, where it wrote the date after `there`, and answered after `back`.
    fn asked(sent: u64, there: u64, back: u64) -> Estimate {
        let written = 5_000_000 + i64::try_from(sent + there).unwrap();
        Estimate::of(written - written.rem_euclid(1_000), 999, ms(sent), ms(sent + there + back))
    }

    #[test]
    fn an_answer_says_it_within_a_second_and_the_round_trip() {
        let estimate = asked(10_400, 30, 70);
        assert_eq!(estimate.width(), ms(999 + 100));
        let (now, truth) = (ms(10_600), 5_010_600);
        let earliest = estimate.earliest(now);
        assert!(earliest <= truth && truth <= earliest + 1_099, "{earliest}");
    }

    #[test]
    fn answers_together_say_more_and_never_exclude_the_truth() {
        let mut estimate = asked(10_000, 3, 4);
        for round in 1..60 {
            estimate = estimate.and(asked(10_000 + round * 137, 3, 4));
            let now = 10_000 + round * 137 + 7;
            let earliest = estimate.earliest(ms(now));
            let truth = 5_000_000 + i64::try_from(now).unwrap();
            let latest = earliest + i64::try_from(estimate.width().as_millis()).unwrap();
            assert!(earliest <= truth && truth <= latest, "{earliest} {truth} {latest}");
        }
        assert!(estimate.width() < ms(200), "{estimate:?}");
    }

    #[test]
    fn the_slowest_answer_widens_nothing() {
        let estimate = asked(10_000, 3, 4).and(asked(10_990, 3, 4));
        assert!(estimate.and(asked(11_500, 3_000, 3_000)).width() <= estimate.width() + ms(2));
    }

    #[test]
    fn servers_that_disagree_a_little_widen_it_and_a_step_is_another_time() {
        let exact = |date: i64, at: u64| Estimate::of(date, 0, ms(at), ms(at));
        let estimate = exact(1_000, 0).and(exact(1_150, 100));
        assert_eq!((estimate.earliest(ms(100)), estimate.width()), (1_100, ms(50)));
        assert_eq!(estimate.and(exact(99_000, 200)), exact(99_000, 200));
        assert_eq!(estimate.and(exact(-99_000, 200)), exact(-99_000, 200));
    }
}
