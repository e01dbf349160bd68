//! `POST /v1/operations/{id}/poll`: asks the service now.

use super::Shared;
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::operations::Shown;
use super::problem::{AdminProblem, ProblemDocument};
use super::query::operation_id;
use crate::acts::Operator;
use axum::extract::{Path, State};
use axum::{Extension, Json};
use std::sync::Arc;

/// Has an operation in doubt polled at once, a dead letter too. A worker does it within a second or so; the answer shows the operation as it waits for that.
#[utoipa::path(
    post, path = "/v1/operations/{id}/poll", operation_id = "pollOperation", tag = "operations",
    params(AboutOperation),
    responses(
        (status = 200, description = "It is polled next", body = Shown),
        (status = 400, description = "Invalid operation id", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such operation", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "The outcome is not unknown, or no poll is configured", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn poll(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Result<Json<Shown>, AdminProblem> {
    let id = operation_id(&id)?;
    let seen = shared.acts.poll_now(&operator, id, None).await?;
    let history = shared.history(id).await.ok();
    Ok(Json(Shown::of(seen.record, seen.now, history)))
}
