//! How often what happened.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a publisher has done since it was made.
#[derive(Debug, Default)]
pub struct Counts {
    published: AtomicU64,
    failed: AtomicU64,
    dead_letters: AtomicU64,
}

impl Counts {
    /// Events that the receiver confirmed.
    #[must_use]
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Times that an event was not delivered: refused, or the receiver could not be reached.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Events that became dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> u64 {
        self.dead_letters.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, published: usize, failed: usize, dead_letters: usize) {
        for (counter, more) in
            [(&self.published, published), (&self.failed, failed), (&self.dead_letters, dead_letters)]
        {
            counter.fetch_add(more as u64, Ordering::Relaxed);
        }
    }
}
