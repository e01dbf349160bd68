//! Owners that are late, and owners that panic.

use crate::support::{Ask, Shop};
use axum::Router;
use axum::routing::post;
use semel::transition::{About, Change, Evidence, Settlement, Windows, settle};
use semel::{Actor, Body, Owner, Policy, State, Store as _, StoredResponse, Swap, Swapped};
use semel_tower::{Operation, OutcomeClass, Protection};
use std::time::Duration;

fn impatient() -> Protection {
    Protection { timeout: Duration::from_millis(50), ..Protection::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_slower_than_its_time_out_is_unknown_and_its_late_outcome_is_replayed() {
    let shop = Shop::protected(impatient()).await;
    let first = shop.send(&Ask::payment().held()).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    let meanwhile = shop.send(&Ask::payment()).await;
    assert_eq!((meanwhile.status, meanwhile.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert!(meanwhile.header("retry-after").is_some());
    assert_eq!(meanwhile.operation_id(), first.operation_id());

    shop.till.gate.open();
    shop.engine.drained().await;
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, "effect 1", true));
    assert_eq!((retry.operation_id(), shop.till.effects()), (first.operation_id(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_handler_that_says_released_or_retryable_stays_unknown() {
    for outcome in ["released", "retryable"] {
        let shop = Shop::protected(impatient()).await;
        let slow = Ask::payment().held().answered_with("semel-outcome", outcome);
        assert_eq!(shop.send(&slow).await.status, 504);
        shop.till.gate.open();
        shop.engine.drained().await;
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        assert_eq!(shop.till.effects(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_handler_that_failed_is_replayed_as_failed() {
    let shop = Shop::protected(impatient()).await;
    assert_eq!(shop.send(&Ask::payment().held().status(409)).await.status, 504);
    shop.till.gate.open();
    shop.engine.drained().await;
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (409, "effect 1", true));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_operation_was_settled_meanwhile_answers_what_its_retries_get() {
    let shop = Shop::open().await;
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    shop.clock.advance(Policy::default().lease);
    assert_eq!(shop.send(&Ask::payment()).await.status, 409, "unknown by now");
    let record = shop.record().await;
    assert_eq!(record.state, State::Unknown);
    let response = StoredResponse {
        status: 200,
        headers: vec![],
        body: Body::Stored("settled".into()),
        schema_version: None,
    };
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence: Evidence::Completed { response: Some(response), resource: None },
        note: Some("asked the bank".into()),
        windows: Windows::from(&Policy::default()),
    };
    let Ok(Change::Put { next, history }) =
        settle(&record, &About::of(&record), &settlement, record.times.lease)
    else {
        panic!()
    };
    let swap = Swap { expected: record.expected(), next, history };
    assert_eq!(shop.sqlite.swap(vec![swap]).await.unwrap().items, [Swapped::Done]);

    shop.till.gate.open();
    let late = crate::support::Answer::read(line).await;
    let retry = shop.send(&Ask::payment()).await;
    for answer in [&late, &retry] {
        assert_eq!((answer.status, answer.text(), answer.is_replay()), (200, "settled", true));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_panics_is_unknown_and_not_executed_again() {
    let shop = Shop::open().await;
    let first = shop.send(&Ask::payment().header("x-panic", "1")).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    for _ in 0..2 {
        let retry = shop.send(&Ask::payment()).await;
        assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
        assert_eq!(retry.operation_id(), first.operation_id());
    }
    assert_eq!(shop.till.effects(), 1);
    assert_eq!(shop.record().await.last_error.as_deref(), Some("panicked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_runs_out_under_a_living_owner_is_doubt_until_it_has_spoken() {
    let shop = Shop::open().await;
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    assert_eq!(shop.send(&Ask::payment()).await.code(), "idempotency_key_in_progress");
    shop.clock.advance(Policy::default().lease);
    assert_eq!(shop.send(&Ask::payment()).await.code(), "idempotency_outcome_unknown");
    shop.till.gate.open();
    let first = crate::support::Answer::read(line).await;
    assert_eq!((first.status, first.text(), first.is_replay()), (201, "effect 1", false));
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!((retry.status, &retry.body, retry.is_replay()), (201, &first.body, true));
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_stops_with_its_right_to_execute_leaves_no_doubt() {
    async fn waits(operation: Operation) -> String {
        let ended = operation.right().ended().await;
        // It has begun nothing, and knows that.
        operation.declare_outcome(OutcomeClass::Retryable);
        format!("stopped: {ended}")
    }
    let shop = Shop::built(
        |layer| layer.protect_writes(impatient()).unwrap(),
        |_| Router::new().route("/waits", post(waits)),
    )
    .await;
    let answer = shop.send(&Ask::new("POST", "/waits").key(crate::support::KEY).json("{}")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.text(), "stopped: the outcome of this attempt was declared unknown");
    let record = shop.record().await;
    assert_eq!((record.state, record.attempt), (State::FailedRetryable, 1));
}
