//! What a round's machines are like: decided by its seed, so that the seed alone is enough to have it again.

use crate::profile::Profile;
use crate::store::StoreKind;
use std::fmt;

/// What is special about a round's machines.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
pub(crate) enum Scene {
    /// Answers are stored as they are.
    Plain,
    /// Answers are encrypted in the store.
    Sealed,
    /// The store is on a disk that gets full.
    SmallDisk,
    /// One gateway alone, on a machine whose power is cut: what was not synced is gone.
    PowerCuts,
    /// The gateways' clocks step while they run.
    SteppingClock,
    /// Syncing the disk fails, or takes long.
    FaultySync,
}

impl Scene {
    pub(crate) fn all(store: StoreKind) -> &'static [Self] {
        match store {
            StoreKind::Sqlite => &[
                Self::Plain,
                Self::Sealed,
                Self::SmallDisk,
                Self::PowerCuts,
                Self::SteppingClock,
                Self::FaultySync,
            ],
            StoreKind::Postgres => &[Self::Plain, Self::Sealed, Self::SteppingClock],
        }
    }

    /// They take turns from one seed to the next.
    pub(crate) fn of(store: StoreKind, seed: u64) -> Self {
        let all = Self::all(store);
        all[usize::try_from(seed % all.len() as u64).unwrap_or_default()]
    }

    /// How many gateways there are, each with a service of its own.
    pub(crate) fn gateways(self) -> usize {
        // A file on a disk that loses what was not synced can be followed for one process alone.
        if self == Self::PowerCuts { 1 } else { 2 }
    }

    /// Whether there is a worker besides the gateways.
    pub(crate) fn has_worker(self, profile: Profile) -> bool {
        self != Self::PowerCuts && !profile.has_no_gateway()
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "as it comes",
            Self::Sealed => "encrypted",
            Self::SmallDisk => "on a disk that gets full",
            Self::PowerCuts => "with power cuts",
            Self::SteppingClock => "with clocks that step",
            Self::FaultySync => "with a disk whose syncs fail",
        })
    }
}
