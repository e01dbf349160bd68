//! Payments: made once, shown to whom they belong.

use super::Shared;
use super::gateway::GatewaysName;
use crate::account::Account;
use crate::conclusion::Conclusion;
use crate::database::Recorded;
use crate::error::ApiError;
use crate::payment::{CreatePayment, Payment, Status};
use crate::provider::Call;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use semel::Store;
use semel_tower::{Operation, Replayable};
use serde::Serialize;

/// Only requests that are to be executed come here: the layer has answered all others. If an earlier attempt was cut off, this one
/// goes on after the last recovery point.
pub(super) async fn create(
    operation: Operation,
    account: Account,
    State(shared): State<Shared>,
    headers: HeaderMap,
    name: GatewaysName,
    command: Result<Json<CreatePayment>, JsonRejection>,
) -> Result<Replayable, ApiError> {
    let Json(command) = command?;
    let fail_point = &shared.fail_point;
    shared.demo.pause(&headers).await;
    fail_point.reached("received").await;
    shared.note_name(operation.id(), name).await?;
    let payment = Payment::of(operation.id(), command);
    let conclusion = match &shared.provider {
        // All there is to do is in one database: the payment and the answer that every retry gets are one commit. If the process dies
        // before it, there is neither; if the operation was given to somebody else meanwhile, the whole of it is rolled back.
        None => Conclusion::Booked(payment.with(Status::Completed)),
        // The money is moved by somebody else, and no transaction reaches that far: phases, each with its recovery point.
        Some(options) => {
            let mut phases = operation.phases()?;
            let recorded =
                shared.database.create_payment(&mut phases, &account, &payment, fail_point).await?;
            fail_point.reached("created").await;
            match recorded {
                Recorded::Before(existing) => Conclusion::Existing { asked: payment.terms, existing },
                Recorded::New => {
                    let call = Call::Charge(&payment);
                    let verdict =
                        shared.call_provider(options, &mut phases, operation.id(), &headers, call).await?;
                    Conclusion::charged(payment, verdict)
                }
            }
        }
    };
    let stored = shared.database.conclude(&operation, &account, conclusion, fail_point).await?;
    fail_point.reached("completed").await;
    Ok(stored)
}

pub(super) async fn show(
    account: Account,
    Path(id): Path<String>,
    State(shared): State<Shared>,
) -> Result<Json<Payment>, ApiError> {
    let found = shared.database.find(&account, &id).await.map_err(ApiError::Unreadable)?;
    let payment = found.ok_or(ApiError::NotFound)?;
    Ok(Json(with_status(&*shared.store, payment).await?))
}

/// The payment with how far it is, which its operation's record knows as long as it is under way.
async fn with_status(store: &dyn Store, payment: Payment) -> Result<Payment, ApiError> {
    if matches!(payment.status, Status::Completed | Status::Declined) {
        return Ok(payment);
    }
    let ids = payment.operation().into_iter().collect();
    let found = store.find(ids).await.map_err(|error| ApiError::Unreadable(error.into()))?;
    let record = found.items.into_iter().flatten().next();
    Ok(payment.with(Status::under_way(record.as_ref())))
}

/// The account's payments: how many, and the newest of them.
#[derive(Serialize)]
pub(super) struct Payments {
    count: u32,
    newest: Vec<Payment>,
}

const NEWEST: u32 = 20;

pub(super) async fn list(account: Account, State(shared): State<Shared>) -> Result<Json<Payments>, ApiError> {
    let read = shared.database.newest(&account, NEWEST).await.map_err(ApiError::Unreadable)?;
    let (count, payments) = read;
    let mut newest = Vec::with_capacity(payments.len());
    for payment in payments {
        newest.push(with_status(&*shared.store, payment).await?);
    }
    Ok(Json(Payments { count, newest }))
}
