//! What operators see of a store's clock.

use super::Terms;
use crate::time::Timestamp;
use std::time::Duration;

/// What is asked of a store's clock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ClockRequest {
    /// What time it is, and whether that is trusted.
    Look,
    /// The same, after a clock hold was ended: an operator says that the clock is right.
    Accept,
}

/// What a store says of its clock.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClockReport {
    /// The earliest time that it may be.
    pub earliest: Timestamp,
    /// The latest time that it may be: later than the earliest while a clock hold is open.
    pub latest: Timestamp,
    /// What the store's clock says.
    pub claimed: Timestamp,
    /// How far, and on whose word, the clock is believed.
    pub terms: Terms,
    /// Whether the kernel of this instance reports a synchronised clock; `None`: it cannot say.
    pub synchronised: Option<bool>,
    /// For how long it has, without a break, while a hold is open.
    pub synchronised_for: Duration,
    /// Why this instance does not work: its clock is far from the time that other instances keep.
    pub wrong: Option<String>,
}

impl ClockReport {
    /// A report of a clock that is trusted and says `now`.
    #[must_use]
    pub fn trusted(now: Timestamp, terms: Terms) -> Self {
        Self {
            earliest: now,
            latest: now,
            claimed: now,
            terms,
            synchronised: None,
            synchronised_for: Duration::ZERO,
            wrong: None,
        }
    }

    /// Whether a clock hold is open.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.latest > self.earliest
    }
}
