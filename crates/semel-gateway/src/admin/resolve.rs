//! Settles an unknown outcome by a person's word.

use super::dry_run::DryRunDocument;
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::operations::Shown;
use super::problem::{AdminProblem, ProblemDocument};
use super::query::{OfResolution, operation_id, wants_dry_run};
use super::resolution::Resolution;
use super::{Shared, body};
use crate::acts::{ActError, Operator};
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::{Extension, Json};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The request's body at most: a response of a mebibyte or two, as base64, and a reason.
const BODY: usize = 4 * 1024 * 1024;

/// The operation as it is, or as it would be.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Resolved {
    Settled(Shown),
    Tried(DryRunDocument),
}

/// Settles an unknown outcome by a person's word.
#[utoipa::path(
    post, path = "/v1/operations/{id}/resolve", operation_id = "resolveOperation", tag = "operations",
    params(AboutOperation, OfResolution),
    request_body = Resolution,
    responses(
        (status = 200, description = "The outcome is settled; with `dry_run`, what would follow", body = Resolved),
        (status = 400, description = "Invalid operation id or body, or `failed` or `not_executed` without `attempt`", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such operation", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "The outcome is not unknown, the evidence is about another attempt, or the operation was changed since", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn resolve(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Json<Resolved>, AdminProblem> {
    let (id, dry_run) = (operation_id(&id)?, wants_dry_run(query.as_deref())?);
    let body = body::read(body, BODY).await?;
    let resolution = Resolution::from_json(&body).map_err(|error| AdminProblem::body(error.to_string()))?;
    if dry_run {
        let run = shared.acts.dry_run(&operator, id, resolution.statement()).await?;
        return Ok(Json(Resolved::Tried(run.into())));
    }
    let settled = shared.acts.settle(&operator, id, resolution.statement()).await;
    let seen = settled.map_err(|error| match error {
        ActError::Unknown(_) => AdminProblem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "admin_resolution_unknown",
            "The store's answer was lost: the outcome may or may not be settled. Check the operation before you try \
             again.",
        ),
        error => error.into(),
    })?;
    // It is settled, even if the store does not tell its history any more.
    let history = shared.history(id).await.ok();
    Ok(Json(Resolved::Settled(Shown::of(seen.record, seen.now, history))))
}
