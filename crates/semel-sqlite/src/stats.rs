//! What the writer counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a store has done since it was opened. The ratio of `items` to `commits` is what group commit saves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Transactions that wrote something, each one sync.
    pub commits: u64,
    /// Transactions that found nothing to write (everything was there already); they cost no sync.
    pub empty: u64,
    /// Creates, swaps, removes, remembered values and closures in all of them.
    pub items: u64,
    /// The most items in one transaction.
    pub largest: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    empty: AtomicU64,
    items: AtomicU64,
    largest: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self, items: usize, wrote: bool) {
        let items = items as u64;
        let transactions = if wrote { &self.commits } else { &self.empty };
        transactions.fetch_add(1, Ordering::Relaxed);
        self.items.fetch_add(items, Ordering::Relaxed);
        self.largest.fetch_max(items, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        Stats {
            commits: self.commits.load(Ordering::Relaxed),
            empty: self.empty.load(Ordering::Relaxed),
            items: self.items.load(Ordering::Relaxed),
            largest: self.largest.load(Ordering::Relaxed),
        }
    }
}
