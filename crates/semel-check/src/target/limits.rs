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

/// Keeps a run within its plan. Every request is counted before it is sent, and those that could have an effect by case.
#[derive(Default)]
pub(crate) struct Limits {
    /// How many writes the case that runs may still send.
    left: Mutex<usize>,
    /// How many requests of any kind the run may still send.
    requests_left: AtomicUsize,
    sent: AtomicUsize,
    stopped: OnceLock<String>,
}

impl Limits {
    /// So many requests may be sent from now on, of whatever kind.
    pub(crate) fn allow_requests(&self, requests: usize) {
        self.requests_left.store(requests, Ordering::Relaxed);
    }

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
        self.take_requests(requests)?;
        *left -= writes;
        self.sent.fetch_add(requests, Ordering::Relaxed);
        Ok(())
    }

    /// Takes one reading of the count, or refuses it.
    pub(crate) fn take_reading(&self) -> Result<(), NoAnswer> {
        // What was sent before the run was stopped is still counted.
        if self.stopped().is_some() { Ok(()) } else { self.take_requests(1) }
    }

    fn take_requests(&self, requests: usize) -> Result<(), NoAnswer> {
        let less = |left: usize| left.checked_sub(requests);
        if self.requests_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            self.stop("more requests than the plan allows would be needed: nothing more is sent".into());
        }
        if self.stopped().is_some() { Err(NoAnswer::Stopped) } else { Ok(()) }
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
        limits.allow_requests(100);
        limits.allow(2);
        assert_eq!(limits.take(1, 1), Ok(()));
        assert_eq!(limits.take(1, 0), Ok(()), "a read is no write");
        assert_eq!(limits.take(3, 3), Err(NoAnswer::Stopped));
        assert!(limits.stopped().unwrap().contains("--max-effects"));
        limits.allow(9);
        assert_eq!((limits.take(1, 0), limits.sent()), (Err(NoAnswer::Stopped), 2), "and it stays so");
    }

    #[test]
    fn readings_of_the_count_are_limited_too() {
        let limits = Limits::default();
        limits.allow_requests(2);
        limits.allow(9);
        assert_eq!((limits.take(1, 1), limits.take_reading()), (Ok(()), Ok(())));
        assert_eq!(limits.take_reading(), Err(NoAnswer::Stopped));
        assert!(limits.stopped().unwrap().contains("more requests than the plan allows"));
    }
}
