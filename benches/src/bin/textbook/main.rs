//! The service protected the textbook way: an `INSERT … ON CONFLICT DO NOTHING` before the handler, an `UPDATE` after it, each a commit
//! of its own, nothing gathered.
//!
//! It is what one would write by hand, written well: statements are prepared, connections are kept open, bodies are
//! compared by their hash, and a retry costs one more `SELECT`. What it lacks is what takes longer to write: a request that
//! died between its two statements blocks its key for ever, and nobody is told.

mod connections;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use axum::{Json, body};
use connections::Connections;
use semel_benches::payments::{self, CreatePayment, serve};
use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::{Executor as _, Row as _};
use std::error::Error;

/// As many as do the job best: 16 and 64 are no better with 64 callers, 8 are worse.
const CONNECTIONS: usize = 32;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS idempotency_keys (
    key text PRIMARY KEY,
    fingerprint bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    status smallint,
    answer bytea
)";
const RESERVE: &str =
    "INSERT INTO idempotency_keys (key, fingerprint) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
const COMPLETE: &str = "UPDATE idempotency_keys SET status = $2, answer = $3 WHERE key = $1";
const FIND: &str = "SELECT fingerprint, status, answer FROM idempotency_keys WHERE key = $1";

fn main() -> Result<(), Box<dyn Error>> {
    serve(async |database| {
        let connections = Connections::open(&database, CONNECTIONS).await?;
        connections.take().await?.connection()?.execute(TABLE).await?;
        Ok(Router::new().route("/payments", post(create_once)).with_state(connections))
    })
}

async fn create_once(
    State(connections): State<Connections>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response<Body>, StatusCode> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let key = key.ok_or(StatusCode::BAD_REQUEST)?;
    let command: CreatePayment = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let fingerprint = Sha256::digest(&body).to_vec();
    let reserving = sqlx::query(RESERVE).bind(key).bind(&fingerprint);
    if execute(&connections, reserving).await.map_err(unavailable)? == 0 {
        return replay(&connections, key, &fingerprint).await;
    }
    let (parts, body) = payments::create(Json(command)).await.into_response().into_parts();
    let answer = body::to_bytes(body, 1 << 20).await.map_err(unavailable)?;
    let status = i16::try_from(parts.status.as_u16()).map_err(unavailable)?;
    let completing = sqlx::query(COMPLETE).bind(key).bind(status).bind(&answer[..]);
    execute(&connections, completing).await.map_err(unavailable)?;
    Ok(Response::from_parts(parts, answer.into()))
}

/// How many rows a statement has written.
async fn execute(
    connections: &Connections,
    statement: Query<'_, Postgres, PgArguments>,
) -> Result<u64, sqlx::Error> {
    let mut taken = connections.take().await?;
    Ok(statement.execute(taken.connection()?).await?.rows_affected())
}

async fn replay(
    connections: &Connections,
    key: &str,
    fingerprint: &[u8],
) -> Result<Response<Body>, StatusCode> {
    let mut taken = connections.take().await.map_err(unavailable)?;
    let finding = sqlx::query(FIND).bind(key).fetch_one(taken.connection().map_err(unavailable)?);
    let row = finding.await.map_err(unavailable)?;
    if row.try_get::<&[u8], _>(0).map_err(unavailable)? != fingerprint {
        return Err(StatusCode::UNPROCESSABLE_ENTITY);
    }
    let status: Option<i16> = row.try_get(1).map_err(unavailable)?;
    let status = status.ok_or(StatusCode::CONFLICT)?;
    let answer: Vec<u8> = row.try_get(2).map_err(unavailable)?;
    let status = u16::try_from(status).map_err(unavailable)?;
    let replayed = Response::builder().status(status).header("content-type", "application/json");
    replayed.body(answer.into()).map_err(unavailable)
}

fn unavailable<E>(_: E) -> StatusCode {
    StatusCode::SERVICE_UNAVAILABLE
}
