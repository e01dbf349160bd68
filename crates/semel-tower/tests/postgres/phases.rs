//! A handler with an effect outside, on PostgreSQL: local phase, call, completion, each in its own commit.

use crate::shop::{Means, Shop, ask};
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use semel::{Deduplicated, Identity, Stale, State as RecordState};
use semel_postgres::PgStore;
use semel_testing::database::Cut;
use semel_testing::http::once::Answer;
use semel_testing::store::Gate;
use semel_tower::{Operation, Replayable, Reply};
use sqlx::{PgPool, Row as _};
use std::sync::{Arc, Mutex};

/// Charges once, however often it is asked to.
#[derive(Clone)]
struct Bank {
    calls: Arc<Mutex<Vec<u32>>>,
    gate: Arc<Gate>,
}

#[derive(Clone)]
struct Till {
    store: PgStore,
    db: PgPool,
    bank: Bank,
}

impl Bank {
    async fn charge(&self, identity: Identity, mode: &str) -> Result<String, &'static str> {
        let attempt = identity.attempt();
        self.calls.lock().unwrap().push(attempt);
        if mode == "held" && attempt == 1 {
            self.gate.pass().await;
        }
        if mode == "silent" { Err("no answer") } else { Ok(format!("charge of {}", identity.into_key())) }
    }
}

async fn pay(State(till): State<Till>, operation: Operation, headers: HeaderMap) -> Response {
    let mode = headers.get("x-mode").unwrap().to_str().unwrap();
    match charge(&till, &operation, mode).await {
        Ok(replayable) => replayable.into_response(),
        Err(trouble) => (StatusCode::INTERNAL_SERVER_ERROR, trouble.to_string()).into_response(),
    }
}

type Trouble = Box<dyn std::error::Error + Send + Sync>;

async fn charge(till: &Till, operation: &Operation, mode: &str) -> Result<Replayable, Trouble> {
    let mut phases = operation.phases()?;
    let payment: i64 = till
        .store
        .phase(&mut phases, "created", async |tx| {
            let inserted = sqlx::query("INSERT INTO payments DEFAULT VALUES RETURNING id");
            Ok::<_, sqlx::Error>(inserted.fetch_one(tx).await?.get(0))
        })
        .await?;
    let call = async |identity| till.bank.charge(identity, mode).await;
    let charge: String =
        phases.foreign("charged", Deduplicated, call).await.map_err(|error| error.to_string())?;
    let mut tx = till.db.begin().await?;
    let confirm = sqlx::query("UPDATE payments SET charge = $1 WHERE id = $2").bind(&charge).bind(payment);
    confirm.execute(&mut *tx).await?;
    let document = serde_json::json!({ "id": payment, "charge": charge });
    Ok(operation.complete_in(tx, Reply::json(StatusCode::CREATED, &document)?).await?)
}

async fn open() -> (Shop, Bank) {
    let bank = Bank { calls: Arc::default(), gate: Gate::new() };
    let routes = |Means { db, store }| {
        Router::new().route("/payments", post(pay)).with_state(Till { store, db, bank: bank.clone() })
    };
    (Shop::open(Stale::Resume, routes).await, bank)
}

fn calls(bank: &Bank) -> Vec<u32> {
    bank.calls.lock().unwrap().clone()
}

fn paid(answer: &Answer) {
    assert_eq!(answer.status, 201, "{answer:?}");
    let charge = format!("charge of {}:charged", answer.operation_id());
    assert_eq!(answer.json(), serde_json::json!({ "id": 1, "charge": charge }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_made_once_and_its_answer_replayed() {
    let (shop, bank) = open().await;
    let first = shop.send(&ask("plain")).await;
    paid(&first);
    let replay = shop.send(&ask("plain")).await;
    assert_eq!((&replay.body, replay.is_replay()), (&first.body, true));
    assert_eq!((calls(&bank), shop.payments().await, shop.written_with_the_record().await), (vec![1], 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_hangs_in_its_call_is_taken_over_and_told_what_its_retries_get() {
    let (shop, bank) = open().await;
    let line = ask("held").begin(&shop.server).await;
    bank.gate.reached().await;
    shop.leases_are_over().await;
    let second = shop.send(&ask("held")).await;
    paid(&second);
    bank.gate.open();
    let late = Answer::read(line).await;
    assert_eq!((late.status, &late.body, late.is_replay()), (201, &second.body, true));
    assert_eq!((calls(&bank), shop.payments().await), (vec![1, 2], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_answer_is_unknown_and_what_was_committed_stays() {
    let (shop, bank) = open().await;
    let first = shop.send(&ask("silent")).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    let retry = shop.send(&ask("plain")).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!((calls(&bank), shop.payments().await), (vec![1], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lost_commit_of_a_local_phase_is_read_back_and_the_charge_made() {
    let (shop, bank) = open().await;
    shop.proxy.cut_next(Cut::AnswerOfCommit);
    paid(&shop.send(&ask("plain")).await);
    assert!(shop.proxy.has_cut());
    assert_eq!((calls(&bank), shop.payments().await), (vec![1], 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_phase_that_was_cut_off_is_left_to_the_retry() {
    let (shop, bank) = open().await;
    shop.proxy.cut_next(Cut::Commit);
    let first = shop.send(&ask("plain")).await;
    assert_eq!((first.status, shop.record().await.state), (500, RecordState::FailedRetryable), "{first:?}");
    let retry = shop.send(&ask("plain")).await;
    assert_eq!((retry.status, retry.operation_id(), calls(&bank)), (201, first.operation_id(), vec![2]));
    assert_eq!(shop.payments().await, 1);
}
