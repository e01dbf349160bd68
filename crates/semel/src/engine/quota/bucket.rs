//! How fast: a bucket that fills with time, and holds no more than a burst.

use super::Rate;
use std::time::Duration;
use tokio::time::Instant;

pub(super) struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn full(rate: Rate) -> Self {
        Self { tokens: f64::from(rate.burst), filled: Instant::now() }
    }

    /// Takes one; else how long until there is one.
    pub(super) fn take(&mut self, rate: Rate) -> Result<(), Duration> {
        let now = Instant::now();
        let gained = now.duration_since(self.filled).as_secs_f64() * f64::from(rate.per_second);
        self.tokens = (self.tokens + gained).min(f64::from(rate.burst));
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.tokens) / f64::from(rate.per_second.max(1))))
    }

    /// Puts back one that was not needed. The next filling sees to it that there are not too many.
    pub(super) fn put_back(&mut self) {
        self.tokens += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_then_so_many_a_second_and_never_more_than_a_burst() {
        let rate = Rate { per_second: 2, burst: 3 };
        let mut bucket = Bucket::full(rate);
        assert_eq!((0..10).filter(|_| bucket.take(rate).is_ok()).count(), 3);
        assert_eq!(bucket.take(rate), Err(Duration::from_millis(500)));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!((0..10).filter(|_| bucket.take(rate).is_ok()).count(), 1);
        bucket.put_back();
        assert_eq!((0..10).filter(|_| bucket.take(rate).is_ok()).count(), 1);
        tokio::time::advance(Duration::from_secs(3600)).await;
        bucket.put_back();
        assert_eq!((0..10).filter(|_| bucket.take(rate).is_ok()).count(), 3);
    }
}
