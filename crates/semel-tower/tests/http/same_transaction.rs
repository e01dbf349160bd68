//! Domain rows and completion are one commit: both are there, or neither is.

use crate::support::{Answer, Ask, Gate, KEY, Shop};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderMap, HeaderValue, StatusCode};
use semel::transition::{About, Change, Evidence, Refusal, Settlement, Windows, settle};
use semel::{Actor, Owner, Policy, State as RecordState, Store as _, StoreResponse, Swap, Swapped};
use semel_sqlite::{SqliteOptions, SqliteStore, Transaction};
use semel_tower::{CompleteError, Operation, Protection, Replayable, Reply};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
struct Ledger {
    store: SqliteStore,
    gate: Arc<Gate>,
}

/// The application's own error.
#[derive(Debug)]
enum Declined {
    Sqlite,
    NoFunds,
}

impl From<rusqlite::Error> for Declined {
    fn from(_: rusqlite::Error) -> Self {
        Self::Sqlite
    }
}

fn insert(transaction: &Transaction<'_>, operation: &Operation) -> Result<Reply, Declined> {
    transaction.execute("INSERT INTO payments (operation_id) VALUES (?1)", [operation.id().to_string()])?;
    let id = transaction.last_insert_rowid();
    let reply =
        Reply::json(StatusCode::CREATED, &serde_json::json!({ "id": id })).map_err(|_| Declined::Sqlite)?;
    Ok(reply
        .header(http::header::LOCATION, HeaderValue::try_from(format!("/payments/{id}")).unwrap())
        .header(http::header::SET_COOKIE, HeaderValue::from_static("session=1"))
        .resource("payment", id.to_string())
        .schema_version("v1"))
}

const LIMIT: usize = 1024 * 1024;
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");

fn refusal(operation: &Operation) -> Reply {
    assert_eq!((operation.tenant(), operation.name()), ("anonymous", "POST /transfers"));
    Reply::bytes(StatusCode::PAYMENT_REQUIRED, TEXT, "declined").failed()
}

/// A handler that leaves its errors to the layer.
async fn brief(
    State(ledger): State<Ledger>,
    operation: Operation,
) -> Result<Replayable, CompleteError<StatusCode>> {
    if operation.attempt() == 1 {
        ledger.gate.pass().await;
    }
    let working = operation.clone();
    operation
        .complete_with(&ledger.store, move |tx| insert(tx, &working).map_err(|_| StatusCode::IM_A_TEAPOT))
        .await
}

async fn pay(State(ledger): State<Ledger>, operation: Operation, headers: HeaderMap) -> Response {
    let mode = headers.get("x-mode").map_or("plain", |mode| mode.to_str().unwrap()).to_owned();
    if mode == "held" {
        ledger.gate.pass().await;
    }
    let completing = operation.complete_with(&ledger.store, {
        let (operation, mode) = (operation.clone(), mode.clone());
        move |transaction| {
            let reply = insert(transaction, &operation)?;
            match mode.as_str() {
                "declined" | "declined-unknown" => Err(Declined::NoFunds),
                "panic" => panic!("as told"),
                "refused" => Ok(refusal(&operation)),
                "long" => Ok(Reply::bytes(StatusCode::CREATED, TEXT, vec![b'x'; LIMIT + 1])),
                _ => Ok(reply),
            }
        }
    });
    if mode == "gives-up" {
        let Err(_) = tokio::time::timeout(Duration::from_millis(20), completing).await else {
            panic!("it was to wait")
        };
        return (StatusCode::OK, "as if nothing were").into_response();
    }
    match completing.await {
        Ok(_) if mode == "talks-over" => (StatusCode::IM_A_TEAPOT, "something else").into_response(),
        Ok(_) if mode == "panics-after" => panic!("as told"),
        Ok(replayable) => {
            assert_eq!(replayable.status(), if mode == "refused" { 402 } else { 201 });
            let again = operation.complete_with(&ledger.store, |_| Err::<Reply, _>(Declined::NoFunds)).await;
            assert!(matches!(again, Err(CompleteError::Finished)));
            replayable.into_response()
        }
        Err(CompleteError::Application(Declined::NoFunds)) if mode == "declined-unknown" => {
            (StatusCode::BAD_GATEWAY, "who knows").into_response()
        }
        Err(CompleteError::Application(Declined::NoFunds)) => {
            (StatusCode::PAYMENT_REQUIRED, "no funds").into_response()
        }
        Err(CompleteError::Refused(refusal)) => {
            assert_eq!(refusal, Refusal::Fenced);
            (StatusCode::CONFLICT, "fenced").into_response()
        }
        Err(error) => {
            operation.declare_outcome(semel_tower::OutcomeClass::Retryable);
            (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response()
        }
    }
}

fn routes(gate: &Arc<Gate>) -> impl FnOnce(&SqliteStore) -> Router + use<> {
    let gate = Arc::clone(gate);
    |store| {
        Router::new()
            .route("/transfers", post(pay))
            .route("/brief", post(brief))
            .with_state(Ledger { store: store.clone(), gate })
    }
}

struct Bank {
    shop: Shop,
    gate: Arc<Gate>,
}

impl Bank {
    async fn open() -> Self {
        Self::protected(Protection::default()).await
    }

    async fn protected(protection: Protection) -> Self {
        let gate = Gate::new();
        let shop = Shop::built(|layer| layer.protect_writes(protection).unwrap(), routes(&gate)).await;
        Self::with(shop, gate)
    }

    /// A bank that does not wait long for its store.
    async fn impatient() -> Self {
        let gate = Gate::new();
        let shop = Shop::impatient_on(SqliteOptions::new(), routes(&gate)).await;
        Self::with(shop, gate)
    }

    fn with(shop: Shop, gate: Arc<Gate>) -> Self {
        let table = "CREATE TABLE payments (id INTEGER PRIMARY KEY, operation_id TEXT UNIQUE)";
        shop.connection().execute_batch(table).unwrap();
        Self { shop, gate }
    }

    fn ask(mode: &str) -> Ask {
        Ask::new("POST", "/transfers").key(KEY).json(r#"{"amount":"10.00"}"#).header("x-mode", mode)
    }

    async fn send(&self, mode: &str) -> Answer {
        self.shop.send(&Self::ask(mode)).await
    }

    fn payments(&self) -> u32 {
        self.shop.connection().query_row("SELECT count(*) FROM payments", [], |row| row.get(0)).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_domain_row_and_the_completion_are_there_together_and_the_replay_equals_the_first_answer() {
    let bank = Bank::open().await;
    let first = bank.send("plain").await;
    assert_eq!((first.status, first.text()), (201, r#"{"id":1}"#));
    assert_eq!(first.header("location"), Some("/payments/1"));
    assert_eq!(first.header("set-cookie"), None, "what cannot be replayed is not in the first answer either");
    let replay = bank.send("plain").await;
    assert!(replay.is_replay() && !first.is_replay());
    for name in ["content-type", "location", "semel-operation-id", "idempotency-key-expires"] {
        assert!(first.header(name).is_some(), "{name}");
        assert_eq!(first.header(name), replay.header(name));
    }
    assert_eq!((replay.status, &replay.body), (first.status, &first.body));
    assert_eq!(bank.payments(), 1);
    let record = bank.shop.record().await;
    assert_eq!(record.resource.unwrap().id, "1");
    assert_eq!(record.response.unwrap().schema_version.as_deref(), Some("v1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closure_that_fails_leaves_no_row_and_the_handlers_answer_decides() {
    let bank = Bank::open().await;
    let declined = bank.send("declined").await;
    assert_eq!((declined.status, declined.text(), bank.payments()), (402, "no funds", 0));
    let replay = bank.send("plain").await;
    assert_eq!(
        (replay.status, replay.text(), replay.is_replay()),
        (402, "no funds", true),
        "a decline is an outcome"
    );

    let bank = Bank::open().await;
    let unknown = bank.send("declined-unknown").await;
    assert_eq!(
        (unknown.status, unknown.code().as_str(), bank.payments()),
        (504, "idempotency_outcome_unknown", 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closure_that_panics_leaves_no_row_and_the_handlers_answer_decides() {
    let bank = Bank::open().await;
    let failed = bank.send("panic").await;
    assert_eq!((failed.status, bank.payments()), (503, 0));
    let retry = bank.send("plain").await;
    assert_eq!((retry.status, retry.operation_id(), bank.payments()), (201, failed.operation_id(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_between_the_domain_row_and_the_completion_leaves_neither() {
    let bank = Bank::open().await;
    let connection = bank.shop.connection();
    connection
        .execute_batch(
            "CREATE TRIGGER broken BEFORE UPDATE ON semel_records WHEN NEW.state = 'completed'
             BEGIN SELECT RAISE(ABORT, 'as told'); END",
        )
        .unwrap();
    let failed = bank.send("plain").await;
    assert_eq!((failed.status, bank.payments()), (503, 0), "{failed:?}");
    assert_eq!(bank.shop.record().await.state, semel::State::FailedRetryable);
    connection.execute_batch("DROP TRIGGER broken").unwrap();
    let retry = bank.send("plain").await;
    assert_eq!((retry.status, retry.operation_id(), bank.payments()), (201, failed.operation_id(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_locked_leaves_neither() {
    let bank = Bank::impatient().await;
    let line = Bank::ask("held").begin(&bank.shop.server).await;
    bank.gate.reached().await;
    let other = bank.shop.connection();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    bank.gate.open();
    let failed = Answer::read(line).await;
    // Nothing was written, and the handler says so; but that cannot be written down either.
    assert_eq!((failed.status, failed.code().as_str()), (504, "idempotency_outcome_unknown"));
    other.execute_batch("ROLLBACK").unwrap();
    bank.shop.engine.drained().await;
    assert_eq!(bank.payments(), 0);
    let retry = bank.send("plain").await;
    assert_eq!((retry.status, bank.payments()), (201, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fenced_owners_domain_row_is_rolled_back() {
    let bank = Bank::open().await;
    let line = Bank::ask("held").begin(&bank.shop.server).await;
    bank.gate.reached().await;
    bank.shop.clock.advance(Policy::default().lease);
    assert_eq!(bank.send("plain").await.code(), "idempotency_outcome_unknown");
    // An operator settles it as never executed, and a retry executes.
    let record = bank.shop.record().await;
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence: Evidence::NotExecuted,
        note: Some("looked it up".into()),
        windows: Windows::from(&Policy::default()),
    };
    let Ok(Change::Put { next, history }) =
        settle(&record, &About::of(&record), &settlement, record.times.lease)
    else {
        panic!()
    };
    let swap = Swap { expected: record.expected(), next, history };
    assert_eq!(bank.shop.sqlite.swap(vec![swap]).await.unwrap().items, [Swapped::Done]);
    let second = bank.send("plain").await;
    assert_eq!((second.status, bank.payments()), (201, 1));

    bank.gate.open();
    let late = Answer::read(line).await;
    assert_eq!(bank.payments(), 1, "the late owner's row is gone");
    assert_eq!(
        (late.status, &late.body, late.is_replay()),
        (201, &second.body, true),
        "it is told what its retries get"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_is_the_answer_whatever_the_handler_says_afterwards() {
    for mode in ["talks-over", "panics-after"] {
        let bank = Bank::open().await;
        let first = bank.send(mode).await;
        assert_eq!((first.status, first.text()), (201, r#"{"id":1}"#), "{mode}");
        let replay = bank.send(mode).await;
        assert_eq!((&replay.body, replay.is_replay(), bank.payments()), (&first.body, true, 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_stops_waiting_for_the_commit_cannot_answer_as_if_nothing_were() {
    let bank = Bank::impatient().await;
    bank.shop.send(&Ask::payment().key("key-warming-up-00001")).await;
    let other = bank.shop.connection();
    // Once the reservation is there, the lock keeps the commit waiting.
    let gate = Gate::new();
    bank.shop.store.next(crate::support::Call::Create, [crate::support::Fault::HeldAnswer(gate.clone())]);
    let line = Bank::ask("gives-up").begin(&bank.shop.server).await;
    gate.reached().await;
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    gate.open();
    let first = Answer::read(line).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    other.execute_batch("ROLLBACK").unwrap();
    bank.shop.engine.drained().await;
    let retry = bank.send("plain").await;
    // Taken back before it began, or committed all the same: the row and the answer agree.
    match bank.payments() {
        0 => assert_eq!(retry.code(), "idempotency_outcome_unknown"),
        _ => assert_eq!((retry.status, retry.is_replay()), (201, true)),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_a_reference_is_kept_the_first_client_still_gets_the_whole_answer() {
    let policy = Arc::new(Policy { store_response: StoreResponse::Reference, ..Policy::default() });
    let bank = Bank::protected(Protection { policy, ..Protection::default() }).await;
    let first = bank.send("plain").await;
    assert_eq!((first.status, first.text()), (201, r#"{"id":1}"#));
    let retry = bank.send("plain").await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
    assert_eq!(retry.json()["resource"], serde_json::json!({ "type": "payment", "id": "1" }));
    assert_eq!(bank.payments(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_commit_after_the_time_out_still_counts() {
    let bank =
        Bank::protected(Protection { timeout: Duration::from_millis(50), ..Protection::default() }).await;
    let first = bank.send("held").await;
    assert_eq!((first.status, bank.payments()), (504, 0));
    bank.gate.open();
    bank.shop.engine.drained().await;
    let retry = bank.send("plain").await;
    assert_eq!((retry.status, retry.text(), retry.is_replay()), (201, r#"{"id":1}"#, true));
    assert_eq!(bank.payments(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_that_leaves_a_row_is_kept_as_a_failure_with_it() {
    let bank = Bank::open().await;
    let first = bank.send("refused").await;
    let retry = bank.send("refused").await;
    assert_eq!((first.status, first.text(), bank.payments()), (402, "declined", 1));
    assert_eq!((retry.status, &retry.body, retry.is_replay()), (402, &first.body, true));
    assert_eq!(bank.shop.record().await.state, RecordState::FailedReplayable);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_to_keep_still_reaches_the_first_client() {
    let bank = Bank::open().await;
    let first = bank.send("long").await;
    assert_eq!((first.status, first.body.len()), (201, LIMIT + 1));
    assert_eq!(bank.send("long").await.code(), "idempotency_response_not_stored");
    assert_eq!(bank.payments(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_the_store_that_a_handler_passes_on_lets_the_retry_execute() {
    let bank = Bank::impatient().await;
    let ask = Ask::new("POST", "/brief").key(KEY).json("{}");
    let line = ask.begin(&bank.shop.server).await;
    bank.gate.reached().await;
    let mut connection = bank.shop.connection();
    let lock = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    bank.gate.open();
    let first = Answer::read(line).await;
    // The word that nothing happened may itself have to wait for the lock.
    assert!(first.status == 503 || first.code() == "idempotency_outcome_unknown", "{}", first.status);
    drop(lock);
    bank.shop.engine.drained().await;
    let retry = bank.shop.send(&ask).await;
    assert_eq!((retry.status, bank.payments()), (201, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_completed_with_its_rows_is_sealed_too() {
    let bank = Bank::open().await;
    bank.shop.engine.set_keyring(Some(crate::sealing::keyring(&["a"])));
    let first = bank.send("plain").await;
    assert_eq!((first.status, first.text()), (201, r#"{"id":1}"#));
    let kept = bank.shop.record().await.response.unwrap();
    assert!(matches!(kept.body, semel::Body::Sealed(_)) && kept.headers.is_empty(), "{kept:?}");
    let replay = bank.send("plain").await;
    assert_eq!((replay.status, &replay.body, replay.is_replay()), (201, &first.body, true));
    assert_eq!((replay.header("location"), bank.payments()), (Some("/payments/1"), 1));
}
