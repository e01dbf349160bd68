//! The rules that a step can break.

/// A rule that some step broke.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rule {
    /// Work was started again, or made unseen, without proof that nothing was done.
    SecondStart,
    /// The record became one of another request.
    IdentityChanged,
    /// A different request was executed or answered under the key.
    MismatchServed,
    /// An operation was answered in two ways.
    TwoAnswers,
    /// An answer was given of something that the store does not have.
    AnswerLost,
    /// Doubt was left without evidence of this very attempt.
    DoubtWithoutEvidence,
    /// Somebody who is not the owner wrote as the owner.
    FencedWrite,
}
