//! How much may be sent, and how fast.

use crate::answer::NoAnswer;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Spreads requests over time, those that count among them.
pub(crate) struct Pace {
    next: tokio::sync::Mutex<Instant>,
    between: Duration,
}

impl Pace {
    /// So many requests a second.
    pub(crate) fn new(rps: u32) -> Self {
        Self { next: tokio::sync::Mutex::new(Instant::now()), between: Duration::from_secs(1) / rps.max(1) }
    }

    /// Waits until so many more requests may be sent.
    pub(crate) async fn wait(&self, requests: usize) {
        let count = u32::try_from(requests).unwrap_or(u32::MAX);
        let due = {
            let mut next = self.next.lock().await;
            let due = (*next).max(Instant::now());
            *next = due + self.between * count;
            due
        };
        tokio::time::sleep_until(due.into()).await;
    }
}

/// Holds a run to what its plan says. Every request that could have an effect is counted before it is sent.
#[derive(Default)]
pub(crate) struct Limits {
    left: Mutex<usize>,
    sent: AtomicUsize,
    stopped: OnceLock<String>,
}

impl Limits {
    /// So many writes may be sent from now on, and no more.
    pub(crate) fn allow(&self, writes: usize) {
        *self.left() = writes;
    }

    /// So many writes more may be sent.
    pub(crate) fn allow_more(&self, writes: usize) {
        *self.left() += writes;
    }

    /// Nothing is sent any more.
    pub(crate) fn stop(&self, why: String) {
        // The first reason counts.
        let _first = self.stopped.set(why);
    }

    /// Why nothing is sent any more.
    pub(crate) fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// How many requests were sent so far.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::Relaxed)
    }

    /// Takes so many requests, so many of them writes, or refuses them all.
    pub(super) fn take(&self, requests: usize, writes: usize) -> Result<(), NoAnswer> {
        let mut left = self.left();
        if writes > *left {
            self.stop(format!(
                "{writes} more writes would be more than the plan allows (see --max-effects): nothing more is sent"
            ));
        }
        if self.stopped().is_some() {
            return Err(NoAnswer::Stopped);
        }
        *left -= writes;
        self.sent.fetch_add(requests, Ordering::Relaxed);
        Ok(())
    }

    fn left(&self) -> std::sync::MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_plan_does_not_allow_stops_the_run() {
        let limits = Limits::default();
        limits.allow(2);
        assert_eq!(limits.take(1, 1), Ok(()));
        assert_eq!(limits.take(1, 0), Ok(()), "reads are free");
        assert_eq!(limits.take(3, 3), Err(NoAnswer::Stopped));
        assert!(limits.stopped().unwrap().contains("--max-effects"));
        limits.allow(9);
        assert_eq!((limits.take(1, 0), limits.sent()), (Err(NoAnswer::Stopped), 2), "and it stays so");
    }
}
