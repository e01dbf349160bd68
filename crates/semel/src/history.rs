//! A record's history: everything except the plain happy path.

use crate::time::Timestamp;
use alloc::string::String;

/// What happened to a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Happening {
    /// Its outcome became unknown.
    Doubted,
    /// A lease had run out, and a new owner went on.
    TakenOver,
    /// A failed attempt that did nothing was followed by another.
    Retried,
    /// An attempt ended in a proof that nothing happened.
    FailedRetryable,
    /// A later attempt was called off; the record is retryable again.
    Released,
    /// The owner finished it after it had become unknown.
    FinishedLate,
    /// Evidence settled it as completed.
    SettledCompleted,
    /// Evidence settled it as failed.
    SettledFailed,
    /// Evidence settled it as never executed.
    SettledNotExecuted,
    /// Nothing automatic will settle it any more.
    DeadLettered,
    /// Evidence came that was not needed, or came too late; nothing changed.
    Remarked,
}

impl Happening {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Doubted,
        Self::TakenOver,
        Self::Retried,
        Self::FailedRetryable,
        Self::Released,
        Self::FinishedLate,
        Self::SettledCompleted,
        Self::SettledFailed,
        Self::SettledNotExecuted,
        Self::DeadLettered,
        Self::Remarked,
    ];

    /// Its name, as stores and the admin API spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Doubted => "doubted",
            Self::TakenOver => "taken_over",
            Self::Retried => "retried",
            Self::FailedRetryable => "failed_retryable",
            Self::Released => "released",
            Self::FinishedLate => "finished_late",
            Self::SettledCompleted => "settled_completed",
            Self::SettledFailed => "settled_failed",
            Self::SettledNotExecuted => "settled_not_executed",
            Self::DeadLettered => "dead_lettered",
            Self::Remarked => "remarked",
        }
    }

    /// The happening of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|happening| happening.as_str() == name)
    }
}

/// Who did it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Actor {
    /// The owner of the attempt.
    Owner,
    /// A request.
    Request,
    /// The lease watch.
    LeaseWatch,
    /// The reconciler.
    Reconciler,
    /// The webhook of this source.
    Webhook(String),
    /// This person.
    Operator(String),
}

impl core::fmt::Display for Actor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Owner => f.write_str("owner"),
            Self::Request => f.write_str("request"),
            Self::LeaseWatch => f.write_str("lease_watch"),
            Self::Reconciler => f.write_str("reconciler"),
            Self::Webhook(source) => write!(f, "webhook:{source}"),
            Self::Operator(name) => write!(f, "operator:{name}"),
        }
    }
}

impl Actor {
    /// The actor that [`Display`](core::fmt::Display) spells so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name.split_once(':') {
            Some(("webhook", source)) => Some(Self::Webhook(source.into())),
            Some(("operator", person)) => Some(Self::Operator(person.into())),
            Some(_) => None,
            None => {
                [Self::Owner, Self::Request, Self::LeaseWatch, Self::Reconciler].into_iter().find(|actor| {
                    match actor {
                        Self::Owner => name == "owner",
                        Self::Request => name == "request",
                        Self::LeaseWatch => name == "lease_watch",
                        _ => name == "reconciler",
                    }
                })
            }
        }
    }
}

/// One line of a record's history. The store adds the time, and writes it in the same commit as the change.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HistoryEntry {
    /// What happened.
    pub happening: Happening,
    /// Who did it.
    pub actor: Actor,
    /// The attempt it concerns.
    pub attempt: u32,
    /// A code or a person's reason.
    pub note: Option<String>,
}

/// A line of history as a store returns it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HistoryLine {
    /// When it was written, by the store's clock.
    pub at: Timestamp,
    /// The version of the record that was written along with it.
    pub version: u64,
    /// The entry.
    pub entry: HistoryEntry,
}
