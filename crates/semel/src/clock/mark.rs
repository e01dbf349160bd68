//! What a store keeps of its clock, and by which terms it is believed.

use core::time::Duration;

/// Whose word ends a clock hold that a jump across a start opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Trust {
    /// The kernel's, which has to report a synchronised clock throughout [`Terms::hold`]. The default.
    #[default]
    Kernel,
    /// The clock's own: a jump across a start is believed at once. For machines whose kernel cannot report synchronisation; a wrong clock at
    /// one start then ends windows early.
    Always,
}

impl Trust {
    /// Its name, as the configuration spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Always => "always",
        }
    }
}

/// How far, and on whose word, a clock is believed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Terms {
    /// Whose word counts.
    pub trust: Trust,
    /// A jump ahead of more than this opens a clock hold. Default 1 h.
    pub max_step: Duration,
    /// How long the kernel has to report a synchronised clock before a hold ends. Default 15 min.
    pub hold: Duration,
}

impl Terms {
    /// The shortest [`max_step`](Self::max_step): less than that is clock discipline, not a jump.
    pub const SHORTEST_STEP: Duration = Duration::from_secs(1);

    /// The terms, with a [`max_step`](Self::max_step) that takes no more than a quarter of the shortest time for which a key is
    /// [remembered](crate::Policy::remembered): a jump that is just below it is followed.
    #[must_use]
    pub fn within(mut self, shortest_memory: Duration) -> Self {
        self.max_step = self.max_step.min(shortest_memory / 4).max(Self::SHORTEST_STEP);
        self
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            trust: Trust::Kernel,
            max_step: Duration::from_secs(60 * 60),
            hold: Duration::from_secs(15 * 60),
        }
    }
}

/// The store's row about its clock, in milliseconds.
///
/// Written with every commit that writes anything (SQLite), and at least once a minute (all stores), also when idle. It only ever holds
/// trusted time, so that restarts do not carry the earliest time towards the latest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Mark {
    /// The earliest time that it may have been when this was written.
    pub at: i64,
    /// How far the store's clock is ahead of the trusted time; negative: the clock was set back, and is not followed.
    pub behind: i64,
    /// How far the latest time is ahead of the trusted time; positive: a clock hold is open. It is the highest claim during that hold, advances
    /// with the trusted time, and does not go back with the clock.
    pub hold: i64,
    /// Who wrote it: a random number for each process.
    pub by: i64,
}

impl Mark {
    /// Of a store that has never seen a time.
    pub const NONE: Self = Self { at: i64::MIN, behind: 0, hold: 0, by: 0 };

    /// Whether a clock hold is open.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.held() > 0
    }

    /// By how much the latest time is ahead of the trusted time. Programs that do not know `hold` leave it alone when they open one.
    #[must_use]
    pub const fn held(&self) -> i64 {
        let behind = if self.behind > 0 { self.behind } else { 0 };
        if self.hold > behind { self.hold } else { behind }
    }

    /// Whether both say the same of the clock, at whichever times.
    #[must_use]
    pub const fn agrees_with(&self, other: &Self) -> bool {
        self.behind == other.behind && self.hold == other.hold
    }
}
