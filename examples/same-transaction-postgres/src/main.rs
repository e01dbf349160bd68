//! The payment and the answer that its retries get are one commit, in the service's own PostgreSQL database.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router, http::StatusCode};
use semel::{Policy, Stale};
use semel_postgres::PgStore;
use semel_tower::{CompleteError, IdempotencyLayer, OUTCOME, Operation, Protection, Replayable, Reply};
use serde::Deserialize;
use serde_json::json;
use sqlx::PgPool;
use std::sync::Arc;
use std::time::Duration;

#[derive(Deserialize)]
struct CreatePayment {
    account: String,
    cents: i64,
}

async fn create_payment(
    operation: Operation,
    State(db): State<PgPool>,
    Json(command): Json<CreatePayment>,
) -> Result<Replayable, PaymentError> {
    let mut tx = db.begin().await?;
    let debit = "UPDATE accounts SET cents = cents - $2 WHERE name = $1 AND cents >= $2";
    let debit = sqlx::query(debit).bind(&command.account).bind(command.cents).execute(&mut *tx).await?;
    if debit.rows_affected() == 0 {
        return Err(PaymentError::InsufficientFunds);
    }
    let insert = "INSERT INTO payments (account, cents) VALUES ($1, $2) RETURNING id";
    let insert = sqlx::query_scalar(insert).bind(&command.account).bind(command.cents);
    let id: i64 = insert.fetch_one(&mut *tx).await?;
    let reply = Reply::json(StatusCode::CREATED, &json!({ "id": id }))?.resource("payment", id.to_string());
    // Stores the answer, and commits.
    Ok(operation.complete_in(tx, reply).await?)
}

/// Why the transaction was rolled back, and with it everything that the handler did.
#[derive(Debug, thiserror::Error)]
enum PaymentError {
    #[error("insufficient funds")]
    InsufficientFunds,
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error(transparent)]
    Reply(#[from] serde_json::Error),
    #[error(transparent)]
    NotCompleted(#[from] CompleteError),
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
            Self::NotCompleted(error) => error.into_response(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("usage: same-transaction-postgres postgres://… [ADDRESS]")?;
    let store = PgStore::connect(&url).await?;
    let tables = "CREATE TABLE IF NOT EXISTS accounts (name text PRIMARY KEY, cents bigint NOT NULL);
                  CREATE TABLE IF NOT EXISTS payments (
                      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account text, cents bigint);
                  INSERT INTO accounts VALUES ('anna', 2500) ON CONFLICT DO NOTHING;";
    sqlx::raw_sql(tables).execute(store.pool()).await?;

    // All effects are in the completing transaction, so that an attempt that died left none: a retry may run the handler again,
    // once the dead attempt's lease is over.
    let policy = Policy { stale: Stale::Rerun, lease: Duration::from_secs(5), ..Policy::default() };
    let timeout = Duration::from_secs(4);
    let protection = Protection { policy: Arc::new(policy), timeout, ..Protection::default() };
    let layer = IdempotencyLayer::new(store.clone()).protect_writes(protection)?;
    let app =
        Router::new().route("/payments", post(create_payment)).layer(layer).with_state(store.pool().clone());

    let address = arguments.next().unwrap_or("127.0.0.1:3000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("listening on http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
