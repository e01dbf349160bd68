//! What the tier did, counted for metrics.

use crate::trouble::Trouble;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Why a value that was found in Redis was not used, and the store asked instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refused {
    /// The request is another one, or compared by another recipe.
    Fingerprint,
    /// Its window is over, or may be over by now.
    Window,
    /// It was observed too long ago.
    Age,
    /// There is no recent time of the store to judge it by.
    Time,
    /// The operation has changed here since.
    Outdated,
    /// It is an operator's, or the end's of an operation that left no answer.
    Marker,
    /// Another build wrote it.
    Format,
    /// It was changed, is of another key, or was written by somebody else.
    Mac,
    /// It is no value of Semel's.
    Garbage,
}

impl Refused {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Fingerprint,
        Self::Window,
        Self::Age,
        Self::Time,
        Self::Outdated,
        Self::Marker,
        Self::Format,
        Self::Mac,
        Self::Garbage,
    ];

    /// The reason's name, as metrics spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fingerprint => "fingerprint",
            Self::Window => "window",
            Self::Age => "age",
            Self::Time => "time",
            Self::Outdated => "outdated",
            Self::Marker => "marker",
            Self::Format => "format",
            Self::Mac => "mac",
            Self::Garbage => "garbage",
        }
    }
}

/// Counters of a [`Tiered`](crate::Tiered) store since it was made.
#[derive(Debug, Default)]
pub struct Counts {
    pub(crate) replays: AtomicU64,
    pub(crate) in_progress: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) unasked: AtomicU64,
    pub(crate) refused: [AtomicU64; Refused::ALL.len()],
    pub(crate) troubles: [AtomicU64; Trouble::ALL.len()],
    pub(crate) written: AtomicU64,
    pub(crate) open: AtomicBool,
}

impl Counts {
    /// Requests that were answered with the record of an operation that has ended.
    #[must_use]
    pub fn replays(&self) -> u64 {
        self.replays.load(Relaxed)
    }

    /// Requests that were told that their operation is in progress.
    #[must_use]
    pub fn in_progress(&self) -> u64 {
        self.in_progress.load(Relaxed)
    }

    /// Requests of which Redis knew nothing.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    /// Requests for which Redis was not asked, or did not answer in time.
    #[must_use]
    pub fn unasked(&self) -> u64 {
        self.unasked.load(Relaxed)
    }

    /// Requests for which Redis had a value that was not used, for this reason.
    #[must_use]
    pub fn refused(&self, why: Refused) -> u64 {
        self.refused[why as usize].load(Relaxed)
    }

    /// Values that were written to Redis, or kept out by what is there.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }

    /// How often the breaker opened, by what Redis did.
    #[must_use]
    pub fn troubles(&self, trouble: Trouble) -> u64 {
        self.troubles[trouble as usize].load(Relaxed)
    }

    /// Whether the breaker is open: Redis is not used at the moment.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.load(Relaxed)
    }

    pub(crate) fn refuse(&self, why: Refused) {
        self.refused[why as usize].fetch_add(1, Relaxed);
    }
}
