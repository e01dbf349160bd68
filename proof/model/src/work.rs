//! How far an owner's work is, and what the owner writes.

/// How far the work is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stage {
    /// Nothing was done yet.
    Begun,
    /// It was reserved by mistake: nothing will be done.
    NotToBe,
    /// The local phase is committed.
    Pointed,
    /// The provider was called.
    Calling,
    /// The provider has carried it out.
    Done,
    /// The provider has declined for good.
    Declined,
    /// The provider has refused the attempt: nothing happened and nothing will.
    Refused,
}

/// What an owner writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deed {
    /// A sign of life.
    Extend,
    /// The recovery point, along with the local phase.
    Advance,
    /// It happened.
    Complete,
    /// It failed for good.
    Fail,
    /// Nothing happened.
    Retryable,
    /// Nothing happened, and nothing is to be remembered.
    Release,
    /// It does not know.
    Doubt,
}

impl Deed {
    /// The answer that an attempt gives: no two attempts give the same.
    #[must_use]
    pub const fn body(self, attempt: u8) -> u8 {
        if matches!(self, Self::Fail) { 100 + attempt } else { attempt }
    }
}
