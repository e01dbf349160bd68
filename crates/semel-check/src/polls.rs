//! When to look again at something that is waited for.

use std::time::{Duration, Instant};

const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_secs(1);

/// Moments to look again: every 2 ms at first, then less and less often, so that the number of requests has a bound.
pub(crate) struct Polls {
    began: Instant,
    next: Option<Duration>,
    limit: Duration,
}

impl Polls {
    /// From now on, and for so long.
    pub(crate) fn new(limit: Duration) -> Self {
        Self { began: Instant::now(), next: Some(Duration::ZERO), limit }
    }

    /// How many there are at most within a limit.
    pub(crate) fn most(limit: Duration) -> usize {
        std::iter::successors(Some(Duration::ZERO), |at| after(*at, limit)).count()
    }

    /// Waits for the next one. `false` once the time is over.
    pub(crate) async fn next(&mut self) -> bool {
        let Some(at) = self.next.filter(|_| self.began.elapsed() <= self.limit) else { return false };
        tokio::time::sleep_until((self.began + at).into()).await;
        self.next = after(at, self.limit);
        true
    }
}

fn after(at: Duration, limit: Duration) -> Option<Duration> {
    let next = at + (at / 10).clamp(SHORTEST, LONGEST);
    (next < limit).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn there_are_no_more_than_was_said() {
        let limit = Duration::from_millis(50);
        let (mut polls, mut count) = (Polls::new(limit), 0);
        while polls.next().await {
            count += 1;
        }
        assert!((1..=Polls::most(limit)).contains(&count), "{count}");
        assert!(Polls::most(Duration::from_secs(60)) < 200, "every 2 ms would be 30,000");
    }
}
