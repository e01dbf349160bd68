//! What a round is like: decided by its seed, so that the seed alone is enough to have it again.

use crate::processes::StoreKind;
use std::fmt;

/// What is special about a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Scene {
    /// Answers are stored as they are.
    Plain,
    /// Answers are encrypted in the store.
    Sealed,
    /// The store is on a disk that gets full.
    SmallDisk,
    /// One gateway alone, on a machine whose power is cut: what was not synced is gone.
    PowerCuts,
}

impl Scene {
    /// They take turns from one seed to the next.
    pub(crate) fn of(store: StoreKind, seed: u64) -> Self {
        match (store, seed % 4) {
            (_, 1) | (StoreKind::Postgres, 3) => Self::Sealed,
            (StoreKind::Sqlite, 2) => Self::SmallDisk,
            (StoreKind::Sqlite, 3) => Self::PowerCuts,
            _ => Self::Plain,
        }
    }

    /// How many gateways there are, each with a service of its own.
    pub(crate) fn gateways(self) -> usize {
        // A file on a disk that loses what was not synced can be followed for one process alone.
        if self == Self::PowerCuts { 1 } else { 2 }
    }

    /// Whether there is a worker besides the gateways.
    pub(crate) fn has_worker(self) -> bool {
        self != Self::PowerCuts
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "as it comes",
            Self::Sealed => "encrypted",
            Self::SmallDisk => "on a disk that gets full",
            Self::PowerCuts => "with power cuts",
        })
    }
}
