//! Why an operator's act was not done.

use crate::identity::Role;
use crate::reload::ReloadError;
use semel::{Record, StoreError, Timestamp};
use semel_events::outbox::Entry;

/// Why an operator's act was not done. Whatever it says, nothing was changed, but for [`Unknown`](Self::Unknown).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// The role does not allow it.
    #[error("Role {} required; {actor} has the role {}.", needed.as_str(), had.as_str())]
    Forbidden {
        /// The least role that may do it.
        needed: Role,
        /// The role of whoever tried.
        had: Role,
        /// Who tried.
        actor: String,
    },
    /// It covers all tenants, and the user may see some.
    #[error("This covers all tenants; your access is limited to some (`tenants` in your [[admin.user]]).")]
    Limited,
    /// There is no such operation, or the user may not know of it.
    #[error("No operation has this id: it never existed, was released, or was purged.")]
    NoSuchOperation,
    /// There is no such event.
    #[error("No event in the outbox has this id: it was published, dropped, or never appended.")]
    NoSuchEvent,
    /// The store has no outbox.
    #[error("This store has no outbox: sqlite: and postgres:// stores have one.")]
    NoOutbox,
    /// What was stated cannot be meant.
    #[error("{0}")]
    Invalid(String),
    /// `failed` and `not_executed` are about one attempt, which was not named.
    #[error("`{outcome}` applies to one attempt only, and the request does not name it.")]
    AttemptMissing {
        /// The outcome that was stated.
        outcome: &'static str,
        /// The operation as it is.
        seen: Box<Seen>,
    },
    /// The operation is not what the operator looked at any more, or was not what the act is for.
    #[error("{}", why.as_str())]
    Moved {
        /// What is in the way.
        why: MovedOn,
        /// The operation as it is. Its history says who was first.
        seen: Box<Seen>,
    },
    /// Nothing polls this operation.
    #[error("No poll is configured for this operation: its route has no [route.reconcile] with a URL.")]
    NotPolled,
    /// The event is no dead letter.
    #[error(
        "Only dead letters can be requeued or dropped. This event is not one: it is being published, or waits behind an \
         earlier event of its aggregate."
    )]
    NotDeadLetter(Box<Entry>),
    /// The store's answer was lost: it may be done or not. Look, and never simply try again.
    #[error("The store's answer was lost: it may or may not be done. Look before you try again.")]
    Unknown(String),
    /// The configuration was not reloaded.
    #[error(transparent)]
    Reload(#[from] ReloadError),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

/// What kept an act from an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum MovedOn {
    /// Its outcome is not unknown.
    NotUnknown,
    /// It is at another attempt than the one that was looked into.
    OtherAttempt,
    /// It was written since it was looked at.
    OtherVersion,
    /// The owner of the attempt may still be at work.
    LeaseRunning,
}

impl MovedOn {
    /// It as a sentence.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotUnknown => "Only unknown outcomes can be settled or polled.",
            Self::OtherAttempt => "The evidence is about an earlier attempt.",
            Self::OtherVersion => "The operation was changed since you looked at it.",
            Self::LeaseRunning => {
                "The lease of the attempt is not over: its owner may still be at work, so `not_executed` cannot be known yet."
            }
        }
    }

    /// The code of the refusal, as the API and the audit spell it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotUnknown => "admin_not_unknown",
            Self::OtherAttempt => "admin_other_attempt",
            Self::OtherVersion => "admin_other_version",
            Self::LeaseRunning => "admin_lease_running",
        }
    }
}

/// An operation as it was read, with the key that the client sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The record.
    pub record: Record,
    /// The store's now.
    pub now: Timestamp,
}

impl ActError {
    /// The code of the refusal, as the API and the audit spell it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Forbidden { .. } | Self::Limited => "admin_forbidden",
            Self::NoSuchOperation => "admin_no_such_operation",
            Self::NoSuchEvent => "admin_no_such_event",
            Self::NoOutbox => "admin_no_outbox",
            Self::Invalid(_) => "admin_body_invalid",
            Self::AttemptMissing { .. } => "admin_attempt_missing",
            Self::Moved { why, .. } => why.code(),
            Self::NotPolled => "admin_not_polled",
            Self::NotDeadLetter(_) => "admin_event_not_refused",
            Self::Unknown(_) => "admin_act_unknown",
            Self::Reload(error) => error.code(),
            Self::Store(StoreError::Damaged(_)) => "admin_record_damaged",
            Self::Store(_) => "admin_store_unavailable",
        }
    }
}

/// A lost answer to a read changes nothing; one to a write is said where the write is.
impl From<StoreError> for ActError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
