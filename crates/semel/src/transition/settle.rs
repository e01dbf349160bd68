//! Evidence: the provider's word by poll or webhook, or a person's.

use super::{Change, Refusal, Windows, finish, next_version, put, told};
use crate::history::{Actor, Happening, HistoryEntry};
use crate::identity::{OperationId, Owner};
use crate::record::{Record, Resource, State, StoredResponse};
use crate::time::{Timestamp, When};
use alloc::string::String;
use core::time::Duration;

/// What is known now about an outcome that was unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Evidence {
    /// It happened.
    Completed {
        /// What retries get; with `None` they learn that the answer was not stored.
        response: Option<StoredResponse>,
        /// What was made.
        resource: Option<Resource>,
    },
    /// It was refused for good.
    Failed {
        /// What retries get; with `None` they learn that the answer was not stored.
        response: Option<StoredResponse>,
        /// What it concerns.
        resource: Option<Resource>,
    },
    /// It did not happen and cannot happen any more, by evidence from a source that can know.
    NotExecuted,
    /// The source found no trace of the operation, up to and including the attempt that was asked about. Counts only once the
    /// lease is over: an owner with a live lease may be about to execute.
    Absent,
}

/// Evidence, and who brings it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Settlement {
    /// A token of the settler: it fences the old owner, and shows whether a write whose answer was lost was ours.
    pub settler: Owner,
    /// Who brings it.
    pub actor: Actor,
    /// What is known.
    pub evidence: Evidence,
    /// A code, or a person's reason.
    pub note: Option<String>,
    /// How long the final state is kept.
    pub windows: Windows,
}

/// What evidence is about: an operation, and the attempt at it that was looked into.
///
/// There is no evidence about a key: a key may stand for several operations, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct About {
    /// The operation.
    pub operation_id: OperationId,
    /// The attempt; `None` if the evidence does not name one. Only [`Evidence::Completed`] counts then.
    pub attempt: Option<u32>,
}

impl About {
    /// The operation and attempt of `record`.
    #[must_use]
    pub fn of<T>(record: &Record<T>) -> Self {
        Self { operation_id: record.operation_id, attempt: Some(record.attempt) }
    }
}

/// Evidence comes. It moves unknown alone.
///
/// It takes time to gather: between question and answer, and each time that a swap is decided again, the record may have moved on,
/// to a later attempt or to another operation under the same key. That it happened is true of an operation for good. That it did
/// not is true of the attempts up to the one that was looked into, and says nothing about a later one, which may have succeeded. So
/// evidence that it failed or did not happen has to name its attempt. No default would do: the current attempt may not be the one
/// that was looked into.
///
/// # Errors
/// Why the evidence changes nothing.
pub fn settle(
    record: &Record,
    about: &About,
    settlement: &Settlement,
    now: Timestamp,
) -> Result<Change, Refusal> {
    if about.operation_id != record.operation_id {
        return Err(Refusal::OtherOperation);
    }
    if record.state != State::Unknown {
        return Err(Refusal::NotUnknown);
    }
    let for_good = matches!(settlement.evidence, Evidence::Completed { .. });
    if about.attempt != Some(record.attempt) && !for_good {
        return Err(if about.attempt.is_some() { Refusal::OtherAttempt } else { Refusal::AttemptNotNamed });
    }
    if settlement.evidence == Evidence::Absent && !record.times.lease.has_come(now) {
        return Err(Refusal::LeaseRunning);
    }
    let (state, happening, response, resource) = match &settlement.evidence {
        Evidence::Completed { response, resource } => {
            (State::Completed, Happening::SettledCompleted, response.clone(), resource.clone())
        }
        Evidence::Failed { response, resource } => {
            (State::FailedReplayable, Happening::SettledFailed, response.clone(), resource.clone())
        }
        Evidence::NotExecuted | Evidence::Absent => {
            (State::FailedRetryable, Happening::SettledNotExecuted, None, None)
        }
    };
    let mut next = finish(next_version(record), state, response, resource, settlement.windows);
    next.owner = settlement.settler;
    Ok(put(next, told(happening, settlement.actor.clone(), record.attempt, settlement.note.clone())))
}

/// Evidence that changes nothing is kept in the history.
#[must_use]
pub fn remark(record: &Record, actor: Actor, note: Option<String>) -> Change {
    let entry = HistoryEntry { happening: Happening::Remarked, actor, attempt: record.attempt, note };
    put(next_version(record), Some(entry))
}

/// How often, and when next, an unknown outcome is asked about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Polling {
    /// The number of polls, after which the record is a dead letter.
    pub attempts: u32,
    /// How long until the next one.
    pub next: Duration,
}

/// A reconciler claims the next poll. The one whose write succeeds asks; no other does until the next time.
///
/// # Errors
/// Why no poll is due.
pub fn poll(record: &Record, polling: &Polling, now: Timestamp) -> Result<Change, Refusal> {
    if record.state != State::Unknown || record.dead_letter {
        return Err(Refusal::NotUnknown);
    }
    if !record.times.reconcile.is_some_and(|at| at.has_come(now)) {
        return Err(Refusal::NotDue);
    }
    let mut next = next_version(record);
    if record.reconcile_attempts >= polling.attempts {
        next.dead_letter = true;
        next.times.reconcile = None;
        let note = Some("polls_used_up".into());
        return Ok(put(next, told(Happening::DeadLettered, Actor::Reconciler, record.attempt, note)));
    }
    next.reconcile_attempts += 1;
    next.times.reconcile = Some(When::In(polling.next));
    Ok(put(next, None))
}

/// An operator has doubt asked about at once. A dead letter is asked about again, as often as doubt that is new.
///
/// # Errors
/// It is not in doubt.
pub fn ask_now(record: &Record) -> Result<Change, Refusal> {
    if record.state != State::Unknown {
        return Err(Refusal::NotUnknown);
    }
    let mut next = next_version(record);
    if next.dead_letter {
        next.dead_letter = false;
        next.reconcile_attempts = 0;
    }
    next.times.reconcile = Some(When::NOW);
    Ok(put(next, None))
}

/// Doubt that a webhook alone was to end is asked about as well, at once: the rules have changed since.
///
/// # Errors
/// It is no such doubt.
pub fn ask_as_well(record: &Record) -> Result<Change, Refusal> {
    if record.state != State::Unknown || record.dead_letter {
        return Err(Refusal::NotUnknown);
    }
    if record.times.reconcile.is_some() {
        return Err(Refusal::NotDue);
    }
    let mut next = next_version(record);
    next.times.reconcile = Some(When::NOW);
    Ok(put(next, None))
}
