//! Deliberate mistakes. A model that cannot tell them from the real thing proves nothing.

/// A mistake in the rules, or in the engine around them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mutant {
    /// A lease that ran out is taken over although the policy says unknown, as lock-based libraries do.
    LeaseStolen,
    /// Whoever writes as the owner is believed.
    FenceIgnored,
    /// An attempt that took over doubt may be released.
    DoubtReleased,
    /// Absence counts although the lease runs.
    AbsenceEarly,
    /// Evidence counts for whatever attempt is under way by now.
    EvidenceOfAnotherAttempt,
    /// Evidence counts for whatever operation is under way by now under the key.
    EvidenceOfAnotherOperation,
    /// Evidence that does not name its attempt counts for the one that is there.
    AttemptDefaulted,
    /// A message that names a key counts for whatever operation the key stands for by now.
    KeyTakenForOperation,
    /// Whoever says to a poll that nothing is known of it is believed.
    AnyAbsenceBelieved,
    /// An answer to a poll counts whichever attempt it is about.
    EchoIgnored,
    /// A request is told that its key is in use before it is told that the body is another one.
    MismatchLate,
    /// A tombstone is treated as nothing.
    TombstoneIgnored,
    /// Evidence leaves the old owner's token in place.
    SettlerUnfenced,
    /// After a lost answer, any owner at work is taken to be oneself.
    ReadBackBlind,
    /// After a lost answer, work is begun although the outcome is unknown by now.
    DoubtBegun,
    /// After a lost answer to `create`, it is taken to have succeeded.
    LossGuessed,
    /// A second answer to an earlier call is taken to be the answer to the current one.
    DoubleBelieved,
    /// The reaper clears away what is unknown.
    DoubtReaped,
    /// An operation is made unseen although a recovery point was committed.
    PointReleased,
    /// A phase whose acknowledgement was lost is committed again.
    PhaseRepeated,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::LeaseStolen,
        Self::FenceIgnored,
        Self::DoubtReleased,
        Self::AbsenceEarly,
        Self::EvidenceOfAnotherAttempt,
        Self::EvidenceOfAnotherOperation,
        Self::AttemptDefaulted,
        Self::KeyTakenForOperation,
        Self::AnyAbsenceBelieved,
        Self::EchoIgnored,
        Self::MismatchLate,
        Self::TombstoneIgnored,
        Self::SettlerUnfenced,
        Self::ReadBackBlind,
        Self::DoubtBegun,
        Self::LossGuessed,
        Self::DoubleBelieved,
        Self::DoubtReaped,
        Self::PointReleased,
        Self::PhaseRepeated,
    ];
}
