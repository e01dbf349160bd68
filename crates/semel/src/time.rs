//! Moments and durations by the store's clock.

use core::fmt;
use core::time::Duration;

/// A moment by the store's clock, in milliseconds since 1970 (UTC).
///
/// There is no `now()`: the time is the store's, which returns it with every answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment that is this many milliseconds after the beginning of 1970.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the beginning of 1970.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// The moment that is `duration` later; the end of time where it would overflow.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// The moment that is `duration` earlier; the beginning of time where it would overflow.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long it is from now until this moment; zero if it has passed.
    #[must_use]
    pub fn after(self, now: Self) -> Duration {
        let millis = self.0.saturating_sub(now.0).max(0);
        Duration::from_millis(millis.unsigned_abs())
    }

    /// Whether the moment has come at `now`.
    #[must_use]
    pub fn has_come(self, now: Self) -> bool {
        self.0 <= now.0
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// What time it is by a store's clock: an interval, and since when it runs smoothly.
///
/// Windows are stamped from the latest time and judged over by the earliest, so that a clock that is wrong makes them longer and
/// never shorter. Leases and polls are stamped and judged by the earliest. With a trusted clock the two are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Now {
    /// The earliest time that it may be. It never goes back.
    pub earliest: Timestamp,
    /// The latest time that it may be; never before the earliest.
    pub latest: Timestamp,
    /// How long the clock has run without a step, by the judge's own steady clock. No lease is judged over before this has reached one
    /// whole lease: what was stamped before the step may still be held by an owner at work.
    pub steady: Duration,
    /// What the earliest time was when it began to run so. What was made since then was stamped by the clock as it runs now.
    pub since: Timestamp,
}

impl Now {
    /// Whether the two times differ: a clock hold is open.
    #[must_use]
    pub fn is_held(self) -> bool {
        self.latest > self.earliest
    }

    /// How long it is until a lease of this length may be judged over, of a record that was made at `created`: the clock has to run smoothly
    /// for as long, unless the record is younger than the last step.
    #[must_use]
    pub fn until_steady(self, created: Timestamp, lease: Duration) -> Duration {
        if created >= self.since { Duration::ZERO } else { lease.saturating_sub(self.steady) }
    }
}

/// The time of a clock that is trusted, and always was.
impl From<Timestamp> for Now {
    fn from(now: Timestamp) -> Self {
        Self { earliest: now, latest: now, steady: Duration::MAX, since: Timestamp(i64::MIN) }
    }
}

/// A moment in a record that is yet to be written: one that stands already, or one that the store counts from its own
/// clock at the time of writing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// This very moment.
    At(Timestamp),
    /// This long after the store's now.
    In(Duration),
}

impl When {
    /// The store's now itself.
    pub const NOW: Self = Self::In(Duration::ZERO);

    /// The moment, for a store whose clock says `now`.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(moment) => moment,
            Self::In(duration) => now.plus(duration),
        }
    }
}

impl From<Timestamp> for When {
    fn from(moment: Timestamp) -> Self {
        Self::At(moment)
    }
}
