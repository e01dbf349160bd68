//! Refunds: the same machinery as payments, under a scope of their own.

use super::Shared;
use super::gateway::GatewaysName;
use crate::account::Account;
use crate::conclusion::Conclusion;
use crate::database::RefundAsked;
use crate::error::ApiError;
use crate::payment::Status;
use crate::provider::Call;
use crate::refund::{CreateRefund, Refund};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use semel_tower::{Operation, Replayable};

/// The operation is `POST /payments/{id}/refunds`: its keys and those of payments never meet. The payment's id is part of what is
/// asked for, so that one key never stands for refunds of two payments.
pub(super) async fn create(
    operation: Operation,
    account: Account,
    Path(payment_id): Path<String>,
    State(shared): State<Shared>,
    headers: HeaderMap,
    name: GatewaysName,
    command: Result<Json<CreateRefund>, JsonRejection>,
) -> Result<Replayable, ApiError> {
    let Json(CreateRefund { amount }) = command?;
    let fail_point = &shared.fail_point;
    shared.demo.pause(&headers).await;
    fail_point.reached("received").await;
    shared.note_name(operation.id(), name).await?;
    let asked = RefundAsked { id: Refund::id_of(operation.id()), payment_id, amount };
    let mut phases = operation.phases()?;
    let granted = shared.database.create_refund(&mut phases, &account, &asked, fail_point).await?;
    fail_point.reached("created").await;
    let conclusion = match &shared.provider {
        None => Conclusion::Refunded { refund: granted.refund, status: Status::Completed },
        Some(options) => {
            let call = Call::Refund(&granted);
            let verdict = shared.call_provider(options, &mut phases, operation.id(), &headers, call).await?;
            Conclusion::refunded(granted.refund, &verdict)
        }
    };
    let stored = shared.database.conclude(&operation, &account, conclusion, fail_point).await?;
    fail_point.reached("completed").await;
    Ok(stored)
}
