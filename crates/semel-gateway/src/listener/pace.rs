//! How slowly a client may send and take bodies.

use crate::limits::Limits;
use std::time::Duration;
use tokio::time::Instant;

/// What a client has to keep up with, counted over the time in which it is waited for: never while a service is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The longest pause.
    pause: Duration,
    /// The least bytes a second, on average, after a first `pause`.
    rate: u64,
    /// How long it is waited for in all.
    total: Duration,
}

impl Pace {
    /// For bodies that are passed on, and for answers.
    pub(crate) fn of(limits: &Limits) -> Self {
        Self {
            pause: limits.body_timeout,
            rate: limits.min_body_rate.max(1),
            total: limits.pass_through_timeout,
        }
    }

    /// With a longest pause alone.
    pub(crate) fn pausing(pause: Duration) -> Self {
        Self { pause, rate: u64::MAX, total: Duration::MAX }
    }
}

/// The time that a client has left.
#[derive(Debug)]
pub(crate) struct Patience {
    pace: Pace,
    /// How long it may be waited for now. Bytes earn more of it, up to a `pause`.
    left: Duration,
    /// How long it was waited for.
    spent: Duration,
    since: Option<Instant>,
}

impl Patience {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, left: pace.pause, spent: Duration::ZERO, since: None }
    }

    /// It is waited for, until then at the latest.
    pub(crate) fn wait(&mut self) -> Instant {
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = self.left.min(self.pace.total.saturating_sub(self.spent));
        // An overflow means centuries: no limit.
        since.checked_add(left).unwrap_or_else(|| since + Duration::from_secs(1 << 32))
    }

    /// So many bytes came, or were taken.
    pub(crate) fn moved(&mut self, bytes: usize) {
        if let Some(since) = self.since.take() {
            let waited = since.elapsed();
            self.spent = self.spent.saturating_add(waited);
            self.left = self.left.saturating_sub(waited);
        }
        if self.left < self.pace.pause {
            let earned = match self.pace.rate {
                u64::MAX => self.pace.pause,
                rate => {
                    let nanos = u128::from(bytes as u64) * 1_000_000_000 / u128::from(rate);
                    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
                }
            };
            self.left = self.left.saturating_add(earned).min(self.pace.pause);
        }
    }

    /// The next body.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.pace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    fn pace() -> Pace {
        let second = Duration::from_secs(1);
        Pace { pause: 10 * second, rate: 100, total: 60 * second }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_has_a_longest_length() {
        let start = Instant::now();
        let mut patience = Patience::new(pace());
        patience.moved(10_000);
        assert_eq!((patience.wait() - start).as_secs(), 10, "what came in time earns nothing more");
        sleep(Duration::from_secs(9)).await;
        assert_eq!((patience.wait() - start).as_secs(), 10, "from its beginning");
    }

    #[tokio::test(start_paused = true)]
    async fn drops_do_not_earn_what_they_take() {
        let start = Instant::now();
        let mut patience = Patience::new(pace());
        let mut drops = 0;
        loop {
            let until = patience.wait();
            sleep(Duration::from_secs(1)).await;
            if until <= Instant::now() {
                break;
            }
            patience.moved(1);
            drops += 1;
        }
        assert_eq!((drops, start.elapsed().as_secs()), (10, 11));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_keeps_up_has_the_total_time_and_no_more() {
        let start = Instant::now();
        let mut patience = Patience::new(pace());
        while patience.wait() > Instant::now() {
            sleep(Duration::from_secs(1)).await;
            patience.moved(100);
        }
        assert_eq!(start.elapsed().as_secs(), 60);
        patience.restart();
        assert!(patience.wait() > Instant::now(), "the next body has its own time");
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_waits_for_the_client_does_not_count() {
        let mut patience = Patience::new(Pace::pausing(Duration::from_secs(10)));
        sleep(Duration::from_secs(1000)).await;
        assert_eq!((patience.wait() - Instant::now()).as_secs(), 10);
        sleep(Duration::from_secs(9)).await;
        patience.moved(1);
        assert_eq!((patience.wait() - Instant::now()).as_secs(), 10);
    }
}
