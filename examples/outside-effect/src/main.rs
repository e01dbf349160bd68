//! A charge at a bank, made once: the handler is built from phases, and a later attempt resumes after the last one.

mod bank;
mod error;

use axum::extract::State;
use axum::{Json, Router, http::StatusCode, routing::post};
use bank::{Bank, Verdict};
use error::PaymentError;
use semel::{Deduplicated, Policy, Stale};
use semel_sqlite::SqliteStore;
use semel_tower::{IdempotencyLayer, Operation, Protection, Replayable, Reply};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
struct App {
    store: SqliteStore,
    bank: Bank,
}

#[derive(Deserialize)]
struct CreatePayment {
    cents: u32,
}

async fn create_payment(
    operation: Operation,
    State(app): State<App>,
    Json(CreatePayment { cents }): Json<CreatePayment>,
) -> Result<Replayable, PaymentError> {
    let mut phases = operation.phases()?;

    // Local: the row and the recovery point are one commit.
    let insert = "INSERT INTO payments (cents, status) VALUES (?1, 'pending') RETURNING id";
    let insert = move |tx: &semel_sqlite::Transaction<'_>| tx.query_row(insert, [cents], |row| row.get(0));
    let id: i64 = app.store.phase(&mut phases, "payment_created", insert).await?;

    // Foreign: "sent" is committed, then the one call is made with no transaction open, then its result is committed.
    // `Deduplicated`: this bank executes a call of one key once, so that an attempt that takes over may call again.
    let verdict: Verdict = phases
        .foreign("charged", Deduplicated, async |identity| app.bank.charge(identity, cents).await)
        .await?;

    // The end: what became of the payment, and the answer that every retry gets, are one commit.
    let completed = operation.complete_with(&app.store, move |tx| {
        let (status, reply) = match verdict {
            Verdict::Charged { id: charge } => {
                ("paid", Reply::json(StatusCode::CREATED, &json!({ "id": id, "charge": charge }))?)
            }
            Verdict::Declined { code } => {
                ("declined", Reply::json(StatusCode::PAYMENT_REQUIRED, &json!({ "code": code }))?.failed())
            }
        };
        tx.execute("UPDATE payments SET status = ?2 WHERE id = ?1", (id, status))?;
        Ok(reply.resource("payment", id.to_string()))
    });
    completed.await.map_err(PaymentError::NotCompleted)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = SqliteStore::open("payments.db").await?;
    let table = "CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, cents INTEGER, status TEXT)";
    store.transaction(move |tx| tx.execute_batch(table)).await?;

    // After a crash, a later attempt may resume, once the lease of the one that died is over.
    let policy = Policy { stale: Stale::Resume, lease: Duration::from_secs(5), ..Policy::default() };
    let timeout = Duration::from_secs(4);
    let protection = Protection { policy: Arc::new(policy), timeout, ..Protection::default() };
    let layer = IdempotencyLayer::new(store.clone()).protect_writes(protection)?;
    let app = App { store, bank: Bank::with_ledger("bank.ledger") };
    let app = Router::new().route("/payments", post(create_payment)).layer(layer).with_state(app);

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
