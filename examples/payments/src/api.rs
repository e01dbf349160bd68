//! The routes and their handlers.

use crate::account::Account;
use crate::database::{self, Database, Recorded};
use crate::demo::Demo;
use crate::error::{ApiError, GivenUp};
use crate::payment::{CreatePayment, Payment};
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use semel_tower::{Operation, Replayable, Reply};
use serde::Serialize;

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) database: Database,
    pub(crate) demo: Demo,
}

pub(crate) fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/payments", post(create_payment).get(list_payments))
        .route("/payments/{id}", get(show_payment))
        .with_state(shared)
}

/// Only requests that are to be executed come here: the layer has answered all others.
async fn create_payment(
    operation: Operation,
    account: Account,
    State(shared): State<Shared>,
    headers: HeaderMap,
    command: Result<Json<CreatePayment>, JsonRejection>,
) -> Result<Replayable, ApiError> {
    let Json(command) = command?;
    shared.demo.pause(&headers).await;
    let payment = Payment::of(operation.id(), command);
    // The payment and the answer that every retry gets: one commit. If the process dies before it, there is neither; if the
    // operation was given to somebody else meanwhile, the whole of it is rolled back.
    let stored = operation
        .complete_with(&shared.database.store, move |tx| {
            match database::record(tx, &account, &payment, tx.now())? {
                Recorded::New => reply(StatusCode::CREATED, &payment),
                // A new key for a payment that was made: the client has lost its key, or never kept it. It gets its payment.
                Recorded::Before(existing) if existing.terms == payment.terms => {
                    reply(StatusCode::OK, &existing)
                }
                Recorded::Before(existing) => Err(GivenUp::ReferenceTaken(Box::new(existing))),
            }
        })
        .await?;
    Ok(stored)
}

fn reply(status: StatusCode, payment: &Payment) -> Result<Reply, GivenUp> {
    let location = HeaderValue::try_from(format!("/payments/{}", payment.id))?;
    Ok(Reply::json(status, payment)?.header(LOCATION, location).resource("payment", &payment.id))
}

async fn show_payment(
    account: Account,
    Path(id): Path<String>,
    State(shared): State<Shared>,
) -> Result<Json<Payment>, ApiError> {
    let found = shared.database.read(move |conn| database::find(conn, &account, &id)).await;
    found.map_err(ApiError::Unreadable)?.map(Json).ok_or(ApiError::NotFound)
}

/// The account's payments: how many, and the newest of them.
#[derive(Serialize)]
struct Payments {
    count: u32,
    newest: Vec<Payment>,
}

const NEWEST: u32 = 20;

async fn list_payments(account: Account, State(shared): State<Shared>) -> Result<Json<Payments>, ApiError> {
    let read = shared.database.read(move |conn| {
        let count = database::count(conn, &account)?;
        Ok(Payments { count, newest: database::newest(conn, &account, NEWEST)? })
    });
    read.await.map(Json).map_err(ApiError::Unreadable)
}
