//! A request with a key.

use super::lease::{LEASE_OVER, lease_left};
use super::{Change, Standing, doubt, next_version, put, standing, told};
use crate::history::{Actor, Happening};
use crate::identity::{Fingerprint, OperationId, Owner, RecipeId, RecordKey};
use crate::policy::{Expired, Policy, Stale};
use crate::record::{Body, Draft, Origin, Record, State, Times};
use crate::time::{Now, Timestamp, When};
use core::time::Duration;

/// What a new request writes into the store.
#[derive(Clone, Debug)]
pub struct Reservation {
    /// The scope and the client's key.
    pub key: RecordKey,
    /// The id that the operation will have if this reservation wins.
    pub operation_id: OperationId,
    /// The hash of the request.
    pub fingerprint: Fingerprint,
    /// The rules that it was hashed by.
    pub recipe: RecipeId,
    /// The owner's token if this reservation wins.
    pub owner: Owner,
}

/// The record of a new operation, for a store to create unless the key is taken.
#[must_use]
pub fn reserve(reservation: Reservation, policy: &Policy) -> Draft {
    Draft {
        key: reservation.key,
        operation_id: reservation.operation_id,
        fingerprint: reservation.fingerprint,
        recipe: reservation.recipe,
        state: State::InProgress,
        version: 1,
        attempt: 1,
        owner: reservation.owner,
        origin: Origin::First,
        recovery_point: None,
        checkpoint: None,
        response: None,
        resource: None,
        last_error: None,
        reconcile_attempts: 0,
        dead_letter: false,
        times: Times {
            created: When::NOW,
            lease: When::In(policy.lease),
            completed: None,
            body_expires: None,
            expires: None,
            purge: None,
            reconcile: None,
        },
    }
}

/// How a request's fingerprint compares with the record's, under the record's recipe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Match {
    /// It is the same request.
    Same,
    /// It is another request under the same key.
    Different,
    /// It is a request of another operation, under a key that names one request across all of them. How long the record's own operation
    /// remembers an expired key is not known to this request.
    OtherOperation,
    /// The recipe of the record is unavailable here.
    CannotTell,
}

/// A request that finds a record of its key.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// Whether it asks for the same thing.
    pub matches: Match,
    /// The token that it would own the operation with.
    pub owner: Owner,
    /// The rules of its operation.
    pub policy: &'a Policy,
}

/// What becomes of a request that found a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrived {
    /// Another request used the key: refused, whatever the state.
    KeyReused,
    /// The requests cannot be compared: refused for now.
    CannotTell,
    /// The window is over: refused.
    Expired,
    /// An owner is at work for as long as this without another sign of life.
    InProgress {
        /// What is left of the lease.
        lease_left: Duration,
    },
    /// The stored answer.
    Replay,
    /// The operation has ended, and its answer is not there to replay.
    NotStored,
    /// It is unknown whether it happened.
    Unknown,
    /// The lease has run out: once this is written, the outcome is unknown.
    Doubt(Change),
    /// Once this is written, the request executes as the new owner.
    Take(Change),
    /// The record no longer counts: once it is removed, the request starts afresh.
    Forgotten,
}

/// By how much a record may have been read later than the moment that it is judged at: more than any call to a store takes, and the minute
/// by which a moment may be behind the server's clock.
const LONGEST_READING: Duration = Duration::from_secs(60);

/// A request arrives and finds `record`. It is judged by the earliest time that it may be, and no lease is over before the clock has run
/// smoothly for as long as one.
#[must_use]
pub fn arrive(record: &Record, arrival: &Arrival<'_>, now: impl Into<Now>) -> Arrived {
    let at = now.into();
    let now = at.earliest;
    let standing = standing(record, now);
    let forgotten = match standing {
        Standing::Gone => true,
        // The policy of another operation says nothing of this tombstone.
        Standing::Tombstone => {
            arrival.policy.expired == Expired::New && arrival.matches != Match::OtherOperation
        }
        Standing::Alive | Standing::BodyOver => false,
    };
    if forgotten {
        return Arrived::Forgotten;
    }
    match arrival.matches {
        Match::Different | Match::OtherOperation => return Arrived::KeyReused,
        Match::CannotTell => return Arrived::CannotTell,
        Match::Same => {}
    }
    if standing == Standing::Tombstone {
        return Arrived::Expired;
    }
    match record.state {
        State::InProgress => match lease_left(record, arrival.policy, at) {
            Duration::ZERO => lease_over(record, arrival),
            lease_left => Arrived::InProgress { lease_left },
        },
        State::Completed | State::FailedReplayable => {
            let body = record.response.as_ref().map(|response| &response.body);
            if standing != Standing::BodyOver && body.is_some_and(Body::is_kept) {
                return Arrived::Replay;
            }
            // It went with its window: `now` is of a moment before the record was read. It is refused, and never new work by this alone, for
            // an answer that was lost looks the same. One that is gone long before its time was lost.
            let ends_soon = |end: Timestamp| end.after(now) <= LONGEST_READING;
            let gone = body == Some(&Body::Dropped)
                && record.times.body_expires.is_none()
                && record.times.expires.is_some_and(ends_soon);
            if gone { Arrived::Expired } else { Arrived::NotStored }
        }
        State::FailedRetryable => Arrived::Take(take(record, arrival, Origin::Retry)),
        State::Unknown => Arrived::Unknown,
        State::Expired => Arrived::Expired,
    }
}

fn lease_over(record: &Record, arrival: &Arrival<'_>) -> Arrived {
    match arrival.policy.stale {
        Stale::Unknown => Arrived::Doubt(doubt(record, arrival.policy.settling, LEASE_OVER, Actor::Request)),
        Stale::Resume | Stale::Rerun => Arrived::Take(take(record, arrival, Origin::Doubt)),
    }
}

fn take(record: &Record, arrival: &Arrival<'_>, origin: Origin) -> Change {
    let mut next = next_version(record);
    next.state = State::InProgress;
    next.attempt += 1;
    next.owner = arrival.owner;
    next.origin = origin;
    next.last_error = None;
    next.times.lease = When::In(arrival.policy.lease);
    next.times.expires = None;
    next.times.purge = None;
    let happening = if origin == Origin::Doubt { Happening::TakenOver } else { Happening::Retried };
    let attempt = next.attempt;
    put(next, told(happening, Actor::Request, attempt, None))
}
