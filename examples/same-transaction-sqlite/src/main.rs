//! The payment and the answer that its retries get are one commit, in one SQLite file.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router, http::StatusCode};
use semel::{Policy, Stale};
use semel_sqlite::SqliteStore;
use semel_tower::{CompleteError, IdempotencyLayer, OUTCOME, Operation, Protection, Replayable, Reply};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

#[derive(Deserialize)]
struct CreatePayment {
    account: String,
    cents: u32,
}

async fn create_payment(
    operation: Operation,
    State(store): State<SqliteStore>,
    Json(command): Json<CreatePayment>,
) -> Result<Replayable, CompleteError<PaymentError>> {
    operation
        .complete_with(&store, move |tx| {
            let paid = tx.execute(
                "UPDATE accounts SET cents = cents - ?2 WHERE name = ?1 AND cents >= ?2",
                (&command.account, command.cents),
            )?;
            if paid == 0 {
                return Err(PaymentError::InsufficientFunds);
            }
            let insert = "INSERT INTO payments (account, cents) VALUES (?1, ?2) RETURNING id";
            let id: i64 = tx.query_row(insert, (&command.account, command.cents), |row| row.get(0))?;
            Ok(Reply::json(StatusCode::CREATED, &json!({ "id": id }))?.resource("payment", id.to_string()))
        })
        .await
}

/// Why the transaction was rolled back, and with it everything that the handler did.
#[derive(Debug, thiserror::Error)]
enum PaymentError {
    #[error("insufficient funds")]
    InsufficientFunds,
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
    #[error(transparent)]
    Reply(#[from] serde_json::Error),
}

impl IntoResponse for PaymentError {
    fn into_response(self) -> Response {
        match self {
            // An answer about this payment: retries get it too.
            Self::InsufficientFunds => (StatusCode::PAYMENT_REQUIRED, self.to_string()).into_response(),
            // Nothing was committed: a retry may execute.
            Self::Database(_) | Self::Reply(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, [(OUTCOME, "retryable")]).into_response()
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = SqliteStore::open("payments.db").await?;
    let tables = "CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, cents INTEGER NOT NULL);
                  CREATE TABLE IF NOT EXISTS payments (id INTEGER PRIMARY KEY, account TEXT, cents INTEGER);
                  INSERT OR IGNORE INTO accounts VALUES ('anna', 2500);";
    store.transaction(move |tx| tx.execute_batch(tables)).await?;

    // All effects are in the completing transaction, so that an attempt that died left none: a retry may run the handler again.
    let policy = Policy { stale: Stale::Rerun, ..Policy::default() };
    let protection = Protection { policy: Arc::new(policy), ..Protection::default() };
    let layer = IdempotencyLayer::new(store.clone()).protect_writes(protection)?;
    let app = Router::new().route("/payments", post(create_payment)).layer(layer).with_state(store);

    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
