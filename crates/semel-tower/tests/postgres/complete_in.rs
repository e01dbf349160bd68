//! Domain rows and completion in the handler's own transaction: both are there, or neither is.

use crate::shop::{Means, Shop, ask};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use semel::seal::{Keyring, SealingKey};
use semel::{Stale, State as RecordState};
use semel_testing::database::Cut;
use semel_testing::http::once::Answer;
use semel_testing::store::Gate;
use semel_tower::{CompleteError, Operation, Reply};
use sqlx::{PgPool, Row as _};
use std::sync::Arc;

#[derive(Clone)]
struct Till {
    db: PgPool,
    gate: Arc<Gate>,
}

async fn pay(State(till): State<Till>, operation: Operation, headers: HeaderMap) -> Response {
    let mode = headers.get("x-mode").unwrap().to_str().unwrap();
    let mut tx = till.db.begin().await.unwrap();
    let inserted = sqlx::query("INSERT INTO payments DEFAULT VALUES RETURNING id, pg_backend_pid()");
    let row = inserted.fetch_one(&mut *tx).await.unwrap();
    let (id, backend): (i64, i32) = (row.get(0), row.get(1));
    match mode {
        "held" => till.gate.pass().await,
        "declined" => return (StatusCode::PAYMENT_REQUIRED, "no funds").into_response(),
        "killed" => {
            let kill = sqlx::query("SELECT pg_terminate_backend($1, 5000)").bind(backend);
            kill.execute(&till.db).await.unwrap();
        }
        _ => {}
    }
    let reply = Reply::json(StatusCode::CREATED, &serde_json::json!({ "id": id })).unwrap();
    let reply = reply.resource("payment", id.to_string());
    let completed = operation.complete_in(tx, if mode == "refused" { reply.failed() } else { reply }).await;
    if completed.is_ok() {
        let again =
            operation.complete_in(till.db.begin().await.unwrap(), Reply::json(StatusCode::OK, &()).unwrap());
        assert!(matches!(again.await, Err(CompleteError::Finished)));
    }
    completed.into_response()
}

async fn open() -> (Shop, Arc<Gate>) {
    let gate = Gate::new();
    let till = |Means { db, .. }| Till { db, gate: gate.clone() };
    let routes = |means| Router::new().route("/payments", post(pay)).with_state(till(means));
    (Shop::open(Stale::Rerun, routes).await, gate)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_and_the_completion_are_one_commit_and_the_replay_equals_the_first_answer() {
    let (shop, _) = open().await;
    let first = shop.send(&ask("plain")).await;
    assert_eq!((first.status, first.text()), (201, r#"{"id":1}"#));
    assert_eq!((shop.payments().await, shop.written_with_the_record().await), (1, 1));
    let replay = shop.send(&ask("plain")).await;
    assert_eq!((replay.status, &replay.body, replay.is_replay()), (201, &first.body, true));
    for name in ["content-type", "semel-operation-id"] {
        assert_eq!(first.header(name), replay.header(name));
    }
    assert_eq!((shop.payments().await, shop.record().await.resource.unwrap().id.as_str()), (1, "1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_for_good_is_committed_with_its_rows_too() {
    let (shop, _) = open().await;
    assert_eq!(shop.send(&ask("refused")).await.status, 201);
    assert_eq!((shop.record().await.state, shop.payments().await), (RecordState::FailedReplayable, 1));
    assert!(shop.send(&ask("refused")).await.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_the_handler_drops_leaves_no_row_and_its_answer_decides() {
    let (shop, _) = open().await;
    let declined = shop.send(&ask("declined")).await;
    assert_eq!((declined.status, declined.text(), shop.payments().await), (402, "no funds", 0));
    assert!(shop.send(&ask("plain")).await.is_replay());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_row_of_an_owner_that_was_taken_over_rolls_back_and_it_is_told_what_its_retries_get() {
    let (shop, gate) = open().await;
    let line = ask("held").begin(&shop.server).await;
    gate.reached().await;
    shop.leases_are_over().await;
    let second = shop.send(&ask("plain")).await;
    assert_eq!((second.status, second.text()), (201, r#"{"id":2}"#), "the first row is not committed");
    gate.open();
    let late = Answer::read(line).await;
    assert_eq!((late.status, &late.body, late.is_replay()), (201, &second.body, true));
    assert_eq!(shop.payments().await, 1);
    assert_eq!(shop.record().await.attempt, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_between_the_row_and_the_completion_leaves_neither_and_the_retry_executes() {
    let (shop, _) = open().await;
    shop.completing_fails(true).await;
    let failed = shop.send(&ask("plain")).await;
    assert_eq!((failed.status, shop.payments().await), (503, 0), "{failed:?}");
    assert_eq!(shop.record().await.state, RecordState::FailedRetryable);
    shop.completing_fails(false).await;
    let retry = shop.send(&ask("plain")).await;
    assert_eq!((retry.status, retry.operation_id(), shop.payments().await), (201, failed.operation_id(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backend_that_is_ended_before_the_commit_leaves_neither_and_the_retry_executes() {
    let (shop, _) = open().await;
    let failed = shop.send(&ask("killed")).await;
    assert_eq!((failed.status, shop.payments().await), (503, 0), "{failed:?}");
    let retry = shop.send(&ask("plain")).await;
    assert_eq!((retry.status, retry.operation_id(), shop.payments().await), (201, failed.operation_id(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_answered_from_what_is_stored() {
    let (shop, _) = open().await;
    shop.proxy.cut_next(Cut::AnswerOfCommit);
    let first = shop.send(&ask("plain")).await;
    assert!(shop.proxy.has_cut());
    assert_eq!((first.status, first.text(), first.is_replay()), (201, r#"{"id":1}"#, false));
    let replay = shop.send(&ask("plain")).await;
    assert_eq!((&replay.body, replay.is_replay(), shop.payments().await), (&first.body, true, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_arrived_is_unknown_and_not_tried_again() {
    let (shop, _) = open().await;
    shop.proxy.cut_next(Cut::Commit);
    let first = shop.send(&ask("plain")).await;
    assert!(shop.proxy.has_cut());
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    shop.engine.drained().await;
    let retry = shop.send(&ask("plain")).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(shop.payments().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_completed_with_its_rows_is_sealed_too_even_if_the_commits_answer_is_lost() {
    for lost in [false, true] {
        let (shop, _) = open().await;
        let key = SealingKey::new("2026-11", &[7; 32]).unwrap();
        shop.engine.set_keyring(Some(Keyring::new([key]).unwrap()));
        if lost {
            shop.proxy.cut_next(Cut::AnswerOfCommit);
        }
        let first = shop.send(&ask("plain")).await;
        assert_eq!((first.status, first.text(), first.is_replay()), (201, r#"{"id":1}"#, false));
        let sealed = "SELECT count(*) FROM semel_records JOIN semel_answers USING (operation_id) WHERE body_kind = 'sealed' AND headers = '[]'";
        assert_eq!((shop.number(sealed).await, shop.payments().await), (1, 1));
        let replay = shop.send(&ask("plain")).await;
        assert_eq!((&replay.body, replay.is_replay()), (&first.body, true));
        assert_eq!(replay.header("content-type"), first.header("content-type"));
    }
}
