//! Settles an unknown outcome by a person's word.

use super::document::Operation;
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::operations::Shown;
use super::operations::seen;
use super::problem::{AdminProblem, ProblemDocument};
use super::query::operation_id;
use super::resolution::Resolution;
use super::{Shared, body};
use crate::identity::Identity;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
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
        (status = 200, description = "The outcome is settled", body = Shown),
        (status = 400, description = "Invalid operation id or body, or `failed` or `not_executed` without `attempt`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such operation", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "The outcome is not unknown, or the evidence is about another attempt", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn resolve(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, AdminProblem> {
    let id = operation_id(&id)?;
    let body = body::read(body, BODY).await?;
    let resolution = Resolution::from_json(&body).map_err(|error| AdminProblem::body(error.to_string()))?;

    let engine = shared.admin.engine.clone();
    let (now, record) = engine.find(id).await?;
    let record = seen(&identity, record)?;
    let policy = (shared.admin.policies)(&record.key.operation);
    let verdict =
        resolution.verdict(policy.store_response).map_err(|error| AdminProblem::body(error.to_string()))?;
    if verdict.lacks_attempt() {
        return Err(attempt_missing(verdict.outcome, shared.with_client_key(record).await, now));
    }
    let about = About { operation_id: id, attempt: verdict.attempt };
    let (outcome, operator, claimed) = (verdict.outcome, identity.to_string(), verdict.operator);
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator(operator.clone()),
        evidence: verdict.evidence,
        note: Some(verdict.reason),
        windows: Windows::from(&*policy),
    };
    // On a task of its own: an operator who hangs up must not leave it half told.
    let settling = tokio::spawn(async move {
        let settled = engine.settle(&about, &settlement).await;
        match &settled {
            Ok(Settled::Done(record)) => {
                tracing::info!(operation_id = %record.operation_id, outcome, operator, claimed, "an operator settled the outcome");
            }
            Ok(Settled::Refused(refusal, record)) => {
                tracing::warn!(operation_id = %record.operation_id, ?refusal, operator, "an operator's resolution came too \
                                                                                         late");
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
            tracing::error!(operation_id = %id, error, "the store's answer was lost: the outcome may or may not be \
                                                        settled");
            Err(AdminProblem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "admin_resolution_unknown",
                "The store's answer was lost: the outcome may or may not be settled. Check the operation before you try \
                 again.",
            ))
        }
        Err(error) => Err(error.into()),
    }
}

/// The statement is about one attempt, and the request does not say which. Nothing was changed.
fn attempt_missing(outcome: &str, record: Record, now: Timestamp) -> AdminProblem {
    let (id, attempt) = (record.operation_id, record.attempt);
    let detail = format!(
        "`{outcome}` applies to one attempt only, and the body does not name it. The operation is at attempt {attempt} \
         now: `semel operations show {id}`, or GET /v1/operations/{id}, has its history. If that is the attempt that you \
         checked, add \"attempt\": {attempt}."
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
                "The evidence is about an earlier attempt; the operation is now at attempt {}.",
                record.attempt
            ),
        ),
        _ => {
            ("admin_not_unknown", format!("Only unknown outcomes can be settled; the operation is {state}."))
        }
    };
    AdminProblem::new(StatusCode::CONFLICT, code, detail).about_operation(Operation::of(record, now))
}
