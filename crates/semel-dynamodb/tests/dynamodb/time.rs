//! What time it is: no fresh answer, no judgement; and a clock hold that nobody here has seen yet.

use crate::fixture::{Fixture, create};
use crate::proxy::Fault;
use semel::clock::ClockRequest;
use semel::{State, Store, StoreError, When};
use semel_conformance::Hands as _;
use semel_conformance::samples::{LONG, in_state, key, reserved};
use serde_json::Value;
use std::time::Duration;

#[tokio::test]
async fn without_an_answer_that_says_what_time_it_is_nothing_is_judged_or_written() {
    let fixture = Fixture::new().await;
    let always = usize::MAX;
    for operation in ["GetItem", "PutItem", "UpdateItem", "Query", "BatchGetItem", "BatchWriteItem"] {
        fixture.table.proxy.next(operation, "", Fault::Undated, always);
    }
    fixture.table.clock.forward(Duration::from_secs(6));
    let refused = create(&fixture.store, reserved(key(1))).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let read = fixture.store.read(vec![key(1)]).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    assert_eq!(fixture.writes("PutItem"), 0, "it was not even sent");
}

#[tokio::test]
async fn a_purge_looks_for_a_clock_hold_in_its_own_commit() {
    let fixture = Fixture::new().await;
    let mut draft = in_state(State::Completed, key(1));
    (draft.times.expires, draft.times.purge) = (Some(When::NOW), Some(When::NOW));
    fixture.insert(draft).await;
    fixture.table.proxy.forget();
    fixture.store.clock(ClockRequest::Look).await.unwrap();
    let row = of_clock(&fixture);
    // Another instance opens a hold, which this one does not see: its own clock is right, and it is shown the row as it was.
    let jumped = fixture.table.clock.another();
    let other = fixture.table.options(&jumped).open(&fixture.table.url()).await.unwrap();
    jumped.jump(LONG * 24 * 40);
    let report = other.clock(ClockRequest::Look).await.unwrap();
    assert!(report.latest > report.earliest);
    drop(other);
    jumped.come_back(LONG * 24 * 40);
    fixture.table.proxy.next("GetItem", "\"clock\"", Fault::Stale(row), 1);
    assert!(fixture.store.purge(10).await.unwrap().items.is_empty());
    assert!(fixture.read(&key(1)).await.is_some());
    // Once it has seen that the clock is right, the row says so, and the record goes.
    fixture.store.clock(ClockRequest::Look).await.unwrap();
    assert_eq!(fixture.store.purge(10).await.unwrap().items.len(), 1);
}

/// The answer to the last reading of the clock's item.
fn of_clock(fixture: &Fixture) -> Value {
    let seen = fixture.table.proxy.seen("GetItem");
    let is_clock = |request: &Value| request["Key"]["p"]["S"] == "clock";
    seen.into_iter().rfind(|(request, _)| is_clock(request)).expect("the clock was read").1
}
