//! The state machine: every decision that Semel takes about a record is taken here, by pure functions.
//!
//! `(record, event, now) -> next record and history, or a refusal`. No clock, no store, no async, no `std`: the engine, every
//! store's same-transaction calls and the model checker run this very code. A store only creates, swaps and reads; a swap that
//! loses on the version is decided again here on the record that came back.
//!
//! One file per actor: a request that [`arrive`]s, the owner that [`act`]s, the lease [`watch`], evidence that [`settle`]s doubt (and
//! [`poll`]s for it), the reaper that [`reap`]s, and a change of keys that [`rewrite`]s.
//!
//! # What a crash leaves
//! Each change is one conditional write, so a crash before it leaves the old record and a crash after it the new one:
//!
//! | change | crash before | crash after, before the answer |
//! |---|---|---|
//! | reserve | nothing: the client's retry is the first request | `in_progress` without an owner at work: unknown when its lease ends |
//! | take a retryable failure | retryable still | as after reserve |
//! | take over a lease that ran out | the lease is over still | as after reserve; the next takeover goes on from the same recovery point |
//! | extend, advance | the lease ends earlier, the phase counts as not done | the phase counts as done |
//! | complete, fail | `in_progress`, then unknown: evidence must settle it | the retry replays |
//! | retryable, release | `in_progress`, then unknown, though nothing happened | the retry executes |
//! | doubt | `in_progress` with the lease running out: unknown then | unknown |
//! | settle | unknown still: asked again | settled; the evidence need not come again |
//! | poll | not asked | counted as asked: one question fewer, never one too many |
//! | rewrite | sealed by the old key, which opens it | sealed by the new one |
//! | reap | read as expired all the same, for windows are judged on every read | gone |

mod arrive;
mod lease;
mod owner;
mod reap;
mod rewrite;
mod settle;
#[cfg(test)]
mod tests;
mod watch;

pub use arrive::{Arrival, Arrived, Match, Reservation, arrive, reserve};
pub use owner::{Act, Claim, act};
pub use reap::{Standing, reap, standing, state_at};
pub use rewrite::rewrite;
pub use settle::{About, Evidence, Polling, Settlement, ask_as_well, ask_now, poll, remark, settle};
pub use watch::watch;

use crate::history::{Actor, Happening, HistoryEntry};
use crate::policy::{Policy, Settling};
use crate::record::{Draft, Record, Resource, State, StoredResponse};
use crate::time::When;
use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

/// What is to be written, on the condition that the record is still the one that was judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Replace the record, and append to its history in the same commit.
    Put {
        /// The record as it is to be.
        next: Box<Draft>,
        /// The entry for its history.
        history: Option<HistoryEntry>,
    },
    /// Remove the record and its history.
    Remove,
}

/// Why an event changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The writer is not the owner: another attempt took over, evidence settled it, or it is another operation by now.
    Fenced,
    /// The writer's own final word is there already.
    Finished,
    /// The outcome is unknown: only a final word, or evidence, counts now.
    InDoubt,
    /// The attempt took over doubt: it can no longer be claimed that nothing happened.
    TookOverDoubt,
    /// This recovery point is committed already: an answer was lost, or a phase runs twice.
    AlreadyAdvanced,
    /// A recovery point was committed: the operation cannot be made unseen.
    PastRecoveryPoint,
    /// Evidence, but the outcome is not unknown.
    NotUnknown,
    /// Absence while the lease runs is no proof: the owner may be about to execute.
    LeaseRunning,
    /// The evidence is about another attempt.
    OtherAttempt,
    /// The evidence says that it failed or did not happen, and does not say at which attempt.
    AttemptNotNamed,
    /// The evidence is about another operation under the same key.
    OtherOperation,
    /// Its time has not come.
    NotDue,
    /// The policy leaves it to a client's retry.
    LeftToRetry,
}

/// How long a final state is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Windows {
    /// From the final state to expiry.
    pub retention: Duration,
    /// From the final state until the body goes.
    pub body_retention: Duration,
    /// From expiry until the tombstone goes; [`Duration::MAX`] is for ever.
    pub tombstone: Duration,
}

impl From<&Policy> for Windows {
    fn from(policy: &Policy) -> Self {
        Self {
            retention: policy.retention,
            body_retention: policy.body_retention,
            tombstone: policy.tombstone,
        }
    }
}

/// The record as a draft of its next version.
fn next_version(record: &Record) -> Draft {
    let mut next = record.clone().map_times(|times| times.map(When::At));
    next.version += 1;
    next
}

fn put(next: Draft, history: Option<HistoryEntry>) -> Change {
    Change::Put { next: Box::new(next), history }
}

fn told(happening: Happening, actor: Actor, attempt: u32, note: Option<String>) -> Option<HistoryEntry> {
    Some(HistoryEntry { happening, actor, attempt, note })
}

/// A final state. Its window runs from the store's now.
fn finish(
    mut next: Draft,
    state: State,
    response: Option<StoredResponse>,
    resource: Option<Resource>,
    windows: Windows,
) -> Draft {
    let has_body = response.as_ref().is_some_and(|kept| kept.body.is_kept());
    let body_goes_first = has_body && windows.body_retention < windows.retention;
    next.state = state;
    next.response = response;
    next.resource = resource.or(next.resource);
    next.reconcile_attempts = 0;
    next.dead_letter = false;
    next.times.reconcile = None;
    next.times.completed = (state != State::FailedRetryable).then_some(When::NOW);
    next.times.body_expires = body_goes_first.then_some(When::In(windows.body_retention));
    next.times.expires = Some(When::In(windows.retention));
    next.times.purge = (windows.tombstone != Duration::MAX)
        .then(|| When::In(windows.retention.saturating_add(windows.tombstone)));
    next
}

/// The state of doubt. The owner stays: its late word is still the best evidence there is.
fn doubt(record: &Record, settling: Settling, error: &str, actor: Actor) -> Change {
    let mut next = next_version(record);
    next.state = State::Unknown;
    next.last_error = Some(error.into());
    next.reconcile_attempts = 0;
    match settling {
        Settling::Operator => next.dead_letter = true,
        Settling::Webhook => {}
        Settling::Poll { first } => next.times.reconcile = Some(When::In(first)),
    }
    put(next, told(Happening::Doubted, actor, record.attempt, Some(error.into())))
}
