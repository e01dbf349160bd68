//! Sample records, requests and answers for the rules.

use crate::client::Request;
use bytes::Bytes;
use semel::transition::{Act, Evidence, Reservation, Settlement, Windows, reserve};
use semel::{
    Actor, Body, Draft, Fingerprint, OperationId, Owner, Policy, RecipeId, RecordKey, Resource, Settling,
    State, StoredResponse, When,
};
use std::time::Duration;

/// A duration that does not run out while a test runs.
pub const LONG: Duration = Duration::from_secs(60 * 60);

/// A duration that a test can wait for, by a real clock too.
pub const SHORT: Duration = Duration::from_millis(25);

/// Windows that do not run out.
pub const WINDOWS: Windows = Windows { retention: LONG, body_retention: LONG, tombstone: LONG };

/// The key of this number.
#[must_use]
pub fn key(number: u32) -> RecordKey {
    RecordKey::new("acme", "create_payment", format!("key-{number:012}"))
}

/// A request under the key of this number.
#[must_use]
pub fn request(number: u32) -> Request {
    Request { key: key(number), fingerprint: Fingerprint([7; 32]) }
}

/// The same key, but another request.
#[must_use]
pub fn other_payload(request: &Request) -> Request {
    Request { key: request.key.clone(), fingerprint: Fingerprint([8; 32]) }
}

/// A new record in progress, with a long lease.
#[must_use]
pub fn reserved(key: RecordKey) -> Draft {
    reserved_for(key, LONG)
}

/// A new record in progress, with this lease.
#[must_use]
pub fn reserved_for(key: RecordKey, lease: Duration) -> Draft {
    let policy = Policy { lease, ..Policy::default() };
    let reservation = Reservation {
        key,
        operation_id: OperationId::random(),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([9; 16]),
        owner: Owner::random(),
    };
    reserve(reservation, &policy)
}

/// A record in this state, whole as `Record::check` wants it, every moment a long way off.
#[must_use]
pub fn in_state(state: State, key: RecordKey) -> Draft {
    let mut draft = reserved(key);
    draft.state = state;
    let ended = !matches!(state, State::InProgress | State::Unknown);
    if ended {
        draft.times.completed = (state != State::FailedRetryable).then_some(When::NOW);
        draft.times.expires = Some(When::In(LONG));
        draft.times.purge = Some(When::In(LONG + LONG));
    }
    if matches!(state, State::Completed | State::FailedReplayable) {
        draft.response = Some(response("hello"));
        draft.resource = Some(Resource { kind: "payment".into(), id: "pay_1".into() });
    }
    draft
}

/// The next version of a record, otherwise the same.
#[must_use]
pub fn next(record: &semel::Record) -> Draft {
    let times = record.times.map(When::At);
    Draft {
        version: record.version + 1,
        times,
        key: record.key.clone(),
        operation_id: record.operation_id,
        fingerprint: record.fingerprint,
        recipe: record.recipe,
        state: record.state,
        attempt: record.attempt,
        owner: record.owner,
        origin: record.origin,
        recovery_point: record.recovery_point.clone(),
        checkpoint: record.checkpoint.clone(),
        response: record.response.clone(),
        resource: record.resource.clone(),
        last_error: record.last_error.clone(),
        reconcile_attempts: record.reconcile_attempts,
        dead_letter: record.dead_letter,
    }
}

/// An answer with this body.
#[must_use]
pub fn response(body: &'static str) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![
            ("content-type".into(), Bytes::from_static(b"application/json")),
            ("location".into(), Bytes::from_static(b"/payments/pay_1")),
        ],
        body: Body::Stored(Bytes::from_static(body.as_bytes())),
        schema_version: Some("v2".into()),
    }
}

/// It happened, with this answer.
#[must_use]
pub fn complete(body: &'static str) -> Act {
    complete_within(body, WINDOWS)
}

/// A completion with these windows.
#[must_use]
pub fn complete_within(body: &'static str, windows: Windows) -> Act {
    let resource = Some(Resource { kind: "payment".into(), id: "pay_1".into() });
    Act::Complete { response: Some(response(body)), resource, windows }
}

/// It failed for good, with this answer.
#[must_use]
pub fn fail(body: &'static str) -> Act {
    Act::Fail { response: Some(response(body)), resource: None, windows: WINDOWS }
}

/// It is proved that nothing happened.
#[must_use]
pub fn retryable() -> Act {
    Act::Retryable { error: "upstream_unreachable".into(), windows: WINDOWS }
}

/// Nothing happened, and nothing is to be remembered.
#[must_use]
pub fn release() -> Act {
    Act::Release { windows: WINDOWS }
}

/// Nobody knows.
#[must_use]
pub fn doubt(settling: Settling) -> Act {
    Act::Doubt { error: "timed_out".into(), settling }
}

/// A recovery point.
#[must_use]
pub fn advance(point: &str) -> Act {
    let checkpoint = Some(Bytes::from(format!("done: {point}")));
    Act::Advance { point: point.into(), checkpoint, lease: LONG }
}

/// Everything that an owner can do.
#[must_use]
pub fn every_act() -> Vec<Act> {
    vec![
        Act::Extend { lease: LONG },
        advance("charged"),
        complete("late"),
        fail("late"),
        retryable(),
        release(),
        doubt(Settling::Webhook),
    ]
}

/// An operator's evidence.
#[must_use]
pub fn settlement(evidence: Evidence) -> Settlement {
    Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence,
        note: Some("asked the bank".into()),
        windows: WINDOWS,
    }
}

/// The evidence that it happened, with this answer.
#[must_use]
pub fn it_happened(body: &'static str) -> Evidence {
    Evidence::Completed { response: Some(response(body)), resource: None }
}
