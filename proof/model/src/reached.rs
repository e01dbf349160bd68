//! Which decisions were ever taken: a model that never gets anywhere fails.

use semel::transition::{Arrived, Refusal};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Something that has to happen in some run. A decision leaves no trace in the state, so it is noted on the side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A request was decided so (its place in the order of [`Arrived`]).
    Arrived(u8),
    /// A write was refused so (its place in the order of [`Refusal`]).
    Refused(u8),
    /// An owner completed what had become unknown.
    LateCompletion,
    /// A lost answer was read back, and the write was ours.
    ReadBackOurs,
    /// A write that its sender had given up on was carried out.
    DelayedWrite,
    /// A reservation that nobody executes was given back.
    GivenBack,
    /// A dead letter was made.
    DeadLetter,
    /// An attempt went on after a recovery point.
    Resumed,
    /// An answer came twice.
    Doubled,
    /// A stored answer was dropped.
    AnswerDropped,
    /// A provider's message settled doubt.
    MessageSettles,
    /// A message named a key alone.
    MessageByKey,
    /// A poll was answered by somebody else than the provider.
    StrangersAnswer,
}

impl Event {
    const fn bit(self) -> u64 {
        1 << match self {
            Self::Arrived(place) => place,
            Self::Refused(place) => 16 + place,
            Self::LateCompletion => 40,
            Self::ReadBackOurs => 41,
            Self::DelayedWrite => 42,
            Self::GivenBack => 43,
            Self::DeadLetter => 44,
            Self::Resumed => 45,
            Self::Doubled => 46,
            Self::AnswerDropped => 47,
            Self::MessageSettles => 48,
            Self::MessageByKey => 49,
            Self::StrangersAnswer => 55,
        }
    }

    /// The event of an arrival.
    #[must_use]
    pub const fn arrived(arrived: &Arrived) -> Self {
        Self::Arrived(match arrived {
            Arrived::KeyReused => 0,
            Arrived::CannotTell => 1,
            Arrived::Expired => 2,
            Arrived::InProgress { .. } => 3,
            Arrived::Replay => 4,
            Arrived::NotStored => 5,
            Arrived::Unknown => 6,
            Arrived::Doubt(_) => 7,
            Arrived::Take(_) => 8,
            Arrived::Forgotten => 9,
        })
    }

    /// The event of a refusal.
    #[must_use]
    pub const fn refused(refusal: Refusal) -> Self {
        Self::Refused(match refusal {
            Refusal::Fenced => 0,
            Refusal::Finished => 1,
            Refusal::InDoubt => 2,
            Refusal::TookOverDoubt => 3,
            Refusal::PastRecoveryPoint => 4,
            Refusal::NotUnknown => 5,
            Refusal::LeaseRunning => 6,
            Refusal::OtherAttempt => 7,
            Refusal::NotDue => 8,
            Refusal::LeftToRetry => 9,
            Refusal::OtherOperation => 10,
            Refusal::AlreadyAdvanced => 11,
            Refusal::AttemptNotNamed => 12,
            // A refusal that the model has not heard of: no property asks for it, which a test notices.
            _ => 23,
        })
    }
}

/// What was reached, and what the checker was told of it.
#[derive(Default, Debug)]
pub struct Reached {
    events: AtomicU64,
    told: AtomicU64,
}

impl Reached {
    pub(crate) fn note(&self, event: Event) {
        // Most are noted over and over: a read is cheaper than a write that all cores see.
        if self.events.load(Relaxed) & event.bit() == 0 {
            self.events.fetch_or(event.bit(), Relaxed);
        }
    }

    /// Whether it was reached.
    #[must_use]
    pub fn has(&self, event: Event) -> bool {
        self.events.load(Relaxed) & event.bit() != 0
    }

    /// Whether it was reached, and nobody was told yet. (The checker keeps a path each time that a property answers yes.)
    pub(crate) fn news(&self, event: Event) -> bool {
        self.has(event) && self.first(event.bit())
    }

    /// Whether this bit is told for the first time.
    pub(crate) fn first(&self, bit: u64) -> bool {
        self.told.load(Relaxed) & bit == 0 && self.told.fetch_or(bit, Relaxed) & bit == 0
    }
}
