//! The rules, one sentence each, and tables that leave nothing out.
//!
//! Records are made by the rules themselves, never by hand, and every change goes through [`applied`], which checks what has
//! to hold of all of them.

extern crate std;

mod arrive;
mod owner;
mod reap;
mod settle;

use super::*;
use crate::identity::{Fingerprint, OperationId, Owner, RecipeId, RecordKey};
use crate::policy::{Expired, Stale};
use crate::record::{Body, Origin};
use crate::time::Timestamp;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use std::println;

/// When the records of these tests are made.
const START: Timestamp = Timestamp::from_millis(1_000_000);
const ME: Owner = Owner::from_u128(1);
const SOMEBODY: Owner = Owner::from_u128(2);
const SETTLER: Owner = Owner::from_u128(3);

const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_secs(3600);
const BODY_RETENTION: Duration = Duration::from_secs(600);
const TOMBSTONE: Duration = Duration::from_secs(7200);

fn policy() -> Policy {
    Policy {
        lease: LEASE,
        retention: RETENTION,
        body_retention: BODY_RETENTION,
        tombstone: TOMBSTONE,
        settling: Settling::Poll { first: Duration::from_secs(5) },
        ..Policy::default()
    }
}

fn windows() -> Windows {
    Windows::from(&policy())
}

fn response(body: &'static str) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: Vec::new(),
        body: Body::Stored(Bytes::from_static(body.as_bytes())),
        schema_version: None,
    }
}

fn reserved() -> Record {
    let reservation = Reservation {
        key: RecordKey::new("tenant", "operation", "key"),
        operation_id: OperationId::from_u128(7),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([7; 16]),
        owner: ME,
    };
    reserve(reservation, &policy()).at(START)
}

/// The record that a store has after a change, `None` if it is removed. Whatever the change, this holds of it.
fn applied(before: &Record, change: Change, now: Timestamp) -> Option<Record> {
    let Change::Put { next, .. } = change else {
        return None;
    };
    let after = next.at(now);
    assert_eq!(after.version, before.version + 1, "every write raises the version by one");
    assert_eq!(after.key, before.key);
    assert_eq!(after.operation_id, before.operation_id);
    assert_eq!(after.fingerprint, before.fingerprint);
    assert_eq!(after.recipe, before.recipe);
    assert_eq!(after.times.created, before.times.created);
    assert!(after.attempt == before.attempt || after.attempt == before.attempt + 1);
    assert_eq!(after.check(), Ok(()), "from {before:?} to {after:?}");
    let unfinished = matches!(after.state, State::InProgress | State::Unknown);
    assert_eq!(unfinished, after.times.expires.is_none(), "only what has ended has a window");
    Some(after)
}

fn after(seconds: u64) -> Timestamp {
    START.plus(Duration::from_secs(seconds))
}

/// After every lease in these tests, before any window ends.
fn lease_over() -> Timestamp {
    START.plus(LEASE * 4)
}

fn acted(record: &Record, owner_act: &Act, now: Timestamp) -> Record {
    let change = act(record, &Claim::of(record), owner_act).expect("the owner may do this");
    applied(record, change, now).expect("the record stays")
}

fn complete() -> Act {
    Act::Complete { response: Some(response("done")), resource: None, windows: windows() }
}

fn fail() -> Act {
    Act::Fail { response: Some(response("declined")), resource: None, windows: windows() }
}

fn retryable() -> Act {
    Act::Retryable { error: "not_sent".into(), windows: windows() }
}

fn release() -> Act {
    Act::Release { windows: windows() }
}

fn give_up() -> Act {
    Act::Doubt { error: "timeout".into(), settling: policy().settling }
}

fn advance() -> Act {
    Act::Advance { point: "charged".into(), checkpoint: Some(Bytes::from_static(b"7")), lease: LEASE }
}

fn all_acts() -> [(&'static str, Act); 7] {
    [
        ("extend", Act::Extend { lease: LEASE }),
        ("advance", advance()),
        ("complete", complete()),
        ("fail", fail()),
        ("retryable", retryable()),
        ("release", release()),
        ("doubt", give_up()),
    ]
}

fn arriving(record: &Record, policy: &Policy, now: Timestamp) -> Arrived {
    arrive(record, &Arrival { matches: Match::Same, owner: SOMEBODY, policy }, now)
}

fn taken(record: &Record, policy: &Policy, now: Timestamp) -> Record {
    let Arrived::Take(change) = arriving(record, policy, now) else { panic!("it can be taken: {record:?}") };
    applied(record, change, now).expect("a takeover writes")
}

fn unknown() -> Record {
    acted(&reserved(), &give_up(), START)
}

fn reaped(record: &Record, now: Timestamp) -> Record {
    applied(record, reap(record, now).expect("it is due"), now).expect("the tombstone stays")
}

/// Every state, in every variant that some rule tells apart, each by the way that leads there.
fn every_record() -> Vec<(&'static str, Record)> {
    let resume = Policy { stale: Stale::Resume, ..policy() };
    let failed_once = acted(&reserved(), &retryable(), START);
    let retried = taken(&failed_once, &policy(), START);
    let took_over = taken(&reserved(), &resume, lease_over());
    let checkpointed = acted(&acted(&reserved(), &advance(), START), &complete(), START);
    let dead_letter =
        acted(&reserved(), &Act::Doubt { error: "timeout".into(), settling: Settling::Operator }, START);
    vec![
        ("in_progress", reserved()),
        ("in_progress past a point", acted(&reserved(), &advance(), START)),
        ("in_progress, retried", retried),
        ("in_progress, took over doubt", took_over),
        ("unknown", unknown()),
        ("unknown, dead letter", dead_letter),
        ("completed", acted(&reserved(), &complete(), START)),
        ("failed_replayable", acted(&reserved(), &fail(), START)),
        ("failed_retryable", failed_once),
        ("expired", reaped(&checkpointed, after(3600))),
    ]
}

/// What became of an event, in words: the next state, `removed`, or the refusal.
fn told_in_words(record: &Record, decided: Result<Change, Refusal>, now: Timestamp) -> alloc::string::String {
    match decided {
        Err(refusal) => alloc::format!("{refusal:?}"),
        Ok(change) => match applied(record, change, now) {
            None => "removed".into(),
            Some(next) => next.state.as_str().into(),
        },
    }
}

/// Compares a table of expectations with what the rules say: one row per record, one column per event.
fn assert_table(
    events: &[&str],
    rows: &[(&str, &[&str])],
    mut decide: impl FnMut(&Record, usize) -> alloc::string::String,
) {
    let records = every_record();
    assert_eq!(records.len(), rows.len(), "every record has a row");
    for ((name, record), (row, cells)) in records.iter().zip(rows) {
        assert_eq!(name, row);
        assert_eq!(cells.len(), events.len(), "{name}: every event has a cell");
        for (column, expected) in cells.iter().enumerate() {
            println!("{name} × {}", events[column]);
            assert_eq!(&decide(record, column), expected, "{name} × {}", events[column]);
        }
    }
}

#[test]
fn all_six_states_are_in_the_tables() {
    let records = every_record();
    for state in State::ALL {
        assert!(records.iter().any(|(_, record)| record.state == state), "{state:?}");
    }
}

#[test]
fn a_reservation_is_the_first_attempt_of_its_owner_with_a_lease_and_no_window() {
    let record = reserved();
    assert_eq!((record.state, record.version, record.attempt), (State::InProgress, 1, 1));
    assert_eq!((record.owner, record.origin), (ME, Origin::First));
    assert_eq!(record.times.lease, START.plus(LEASE));
    assert_eq!((record.times.expires, record.times.purge, record.times.completed), (None, None, None));
    assert_eq!(record.check(), Ok(()));
}

#[test]
fn what_is_unfinished_never_expires_however_old_it_is() {
    let century = START.plus(Duration::from_secs(100 * 365 * 24 * 3600));
    for (name, record) in every_record() {
        if !matches!(record.state, State::InProgress | State::Unknown) {
            continue;
        }
        for now in [century, Timestamp::from_millis(i64::MAX)] {
            assert_eq!(standing(&record, now), Standing::Alive, "{name}");
            assert_eq!(reap(&record, now), Err(Refusal::NotDue), "{name}");
            for expired in [Expired::Refuse, Expired::New] {
                let arrived = arriving(&record, &Policy { expired, ..policy() }, now);
                assert!(matches!(arrived, Arrived::Unknown | Arrived::Doubt(_)), "{name}: {arrived:?}");
            }
        }
    }
}

#[test]
fn every_change_that_is_not_the_plain_happy_path_is_told_in_the_history() {
    let tells = |change: &Change| matches!(change, Change::Put { history: Some(_), .. });
    let record = reserved();
    for (name, owner_act) in all_acts() {
        let change = act(&record, &Claim::of(&record), &owner_act).expect("the owner may do this");
        let expected = matches!(name, "retryable" | "doubt");
        assert_eq!(tells(&change), expected, "{name} on time");
    }
    let record = unknown();
    for owner_act in [complete(), fail()] {
        let change = act(&record, &Claim::of(&record), &owner_act).expect("a late word counts");
        let Change::Put { history: Some(entry), .. } = change else { panic!("it is told") };
        assert_eq!((entry.happening, entry.actor), (Happening::FinishedLate, Actor::Owner));
    }
    let Arrived::Doubt(change) = arriving(&reserved(), &policy(), lease_over()) else { panic!("in doubt") };
    assert!(tells(&change));
    let resume = Policy { stale: Stale::Resume, ..policy() };
    let Arrived::Take(Change::Put { history: Some(entry), .. }) =
        arriving(&reserved(), &resume, lease_over())
    else {
        panic!("a takeover is told")
    };
    assert_eq!((entry.happening, entry.attempt), (Happening::TakenOver, 2));
    assert_eq!(entry.actor.to_string(), "request");
}
