//! Settles an unknown outcome by a person's word.

use super::document::Operation;
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::operations::Shown;
use super::problem::{AdminProblem, ProblemDocument};
use super::query::operation_id;
use super::resolution::Resolution;
use super::{Shared, body};
use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use semel::transition::{About, Refusal, Settlement, Windows};
use semel::{Actor, Owner, Record, Settled, StoreError, Timestamp};
use std::sync::Arc;

/// The request's body at most: a response of a mebibyte or two, as base64, and a reason.
const BODY: usize = 4 * 1024 * 1024;

/// Settles an unknown outcome by a person's word.
#[utoipa::path(
    post, path = "/v1/operations/{id}/resolve", operation_id = "resolveOperation", tag = "operations",
    params(AboutOperation),
    request_body = Resolution,
    responses(
        (status = 200, description = "It is settled", body = Shown),
        (status = 400, description = "This is no operation's id, the body is not what it has to be, or `failed` or `not_executed` comes without `attempt`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such operation", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "Its outcome is not unknown, or another attempt is", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 408, description = "The body did not come in time", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The body is too long", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn resolve(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, AdminProblem> {
    let id = operation_id(&id)?;
    let body = body::read(body, BODY).await?;
    let resolution = Resolution::from_json(&body).map_err(|error| AdminProblem::body(error.to_string()))?;

    let engine = shared.admin.engine.clone();
    let (now, record) = engine.find(id).await?;
    let record = record.ok_or_else(AdminProblem::no_such_operation)?;
    let policy = (shared.admin.policies)(&record.key.operation);
    let verdict =
        resolution.verdict(policy.store_response).map_err(|error| AdminProblem::body(error.to_string()))?;
    if verdict.lacks_attempt() {
        return Err(attempt_missing(verdict.outcome, shared.with_client_key(record).await, now));
    }
    let about = About { operation_id: id, attempt: verdict.attempt };
    let (outcome, operator) = (verdict.outcome, verdict.operator.clone());
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator(verdict.operator),
        evidence: verdict.evidence,
        note: Some(verdict.reason),
        windows: Windows::from(&*policy),
    };
    // On a task of its own: an operator who hangs up must not leave it half told.
    let settling = tokio::spawn(async move {
        let settled = engine.settle(&about, &settlement).await;
        match &settled {
            Ok(Settled::Done(record)) => {
                tracing::info!(operation_id = %record.operation_id, outcome, operator, "an operator settled the outcome");
            }
            Ok(Settled::Refused(refusal, record)) => {
                tracing::warn!(operation_id = %record.operation_id, ?refusal, operator, "an operator came too late");
            }
            Ok(_) | Err(_) => {}
        }
        settled
    });
    let settled = settling.await.map_err(|error| StoreError::Lost(error.to_string())).flatten();
    match settled {
        Ok(Settled::Done(record)) => {
            // It is settled, even if the store does not tell its history any more.
            let history = shared.history(id).await.ok();
            Ok(Json(Shown::of(shared.with_client_key(*record).await, now, history)).into_response())
        }
        Ok(Settled::Refused(Refusal::AttemptNotNamed, record)) => {
            Err(attempt_missing(outcome, shared.with_client_key(*record).await, now))
        }
        Ok(Settled::Refused(refusal, record)) => {
            Err(refused(refusal, shared.with_client_key(*record).await, now))
        }
        Ok(Settled::Missing) => Err(AdminProblem::no_such_operation()),
        Err(StoreError::Lost(error)) => {
            tracing::error!(operation_id = %id, error, "it is not known whether the outcome was settled");
            Err(AdminProblem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "admin_resolution_unknown",
                "The store's answer was lost: the outcome may be settled or not. Look at the operation before you try again.",
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// The word is true of one attempt, and nobody says of which. Nothing was changed.
fn attempt_missing(outcome: &str, record: Record, now: Timestamp) -> AdminProblem {
    let (id, attempt) = (record.operation_id, record.attempt);
    let detail = format!(
        "`{outcome}` is true of one attempt alone, and the body does not say of which. The operation is at attempt {attempt} now: \
         `semel operations show {id}`, or GET /v1/operations/{id}, has its history. If that is the attempt that you looked into, \
         add \"attempt\": {attempt}."
    );
    AdminProblem::new(StatusCode::BAD_REQUEST, "admin_attempt_missing", detail)
        .about_operation(Operation::of(record, now))
}

fn refused(refusal: Refusal, record: Record, now: Timestamp) -> AdminProblem {
    let state = record.state.as_str();
    let (code, detail) = match refusal {
        Refusal::OtherAttempt => (
            "admin_other_attempt",
            format!(
                "Attempt {} is under way or in doubt by now, and what is known of an earlier one says nothing about it.",
                record.attempt
            ),
        ),
        _ => (
            "admin_not_unknown",
            format!("The operation is {state} by now, and only an unknown outcome can be settled."),
        ),
    };
    AdminProblem::new(StatusCode::CONFLICT, code, detail).about_operation(Operation::of(record, now))
}
