//! `POST /v1/resolutions`: settles many operations, each on its own evidence, with one result each.

use super::document::Operation;
use super::openapi::{Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use super::query::operation_id;
use super::resolution::{Outcome, Resolution, StrictResource, StrictResponse};
use super::{Shared, body};
use crate::acts::{ActError, Operator, Statement};
use axum::body::Body;
use axum::extract::State;
use axum::{Extension, Json};
use semel::StoreResponse;
use semel::audit::AuditAction;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The request's body at most.
const BODY: usize = 4 * 1024 * 1024;

/// How many operations one request settles at most: its answer must not be long in coming.
const MOST: usize = 100;

/// The body of a request that settles many operations.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resolutions {
    #[schema(min_items = 1, max_items = 100)]
    resolutions: Vec<ResolutionOf>,
}

/// A resolution of one operation of many.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResolutionOfMany)]
struct ResolutionOf {
    /// Which operation.
    #[schema(format = "uuid")]
    operation_id: String,
    outcome: Outcome,
    /// How the operator knows; kept in the history.
    #[schema(min_length = 1, max_length = 2000, pattern = r"\S")]
    reason: String,
    /// The attempt that the operator looked into.
    #[serde(deserialize_with = "super::resolution::whole")]
    attempt: u32,
    /// The version that the operator looked at: if the operation was changed since, nothing is done.
    #[serde(deserialize_with = "super::resolution::whole")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    version: u64,
    /// The answer for retries; only with `completed` and `failed`.
    response: Option<StrictResponse>,
    /// The resource that was created; only with `completed` and `failed`.
    resource: Option<StrictResource>,
    /// The operator's name, where several people share a token.
    #[schema(schema_with = super::schemas::operator)]
    operator: Option<String>,
    /// Where else it is written about: kept in the audit.
    #[schema(max_length = 200, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    ticket: Option<String>,
}

/// What became of each resolution, in their order.
#[derive(Serialize, ToSchema)]
#[schema(as = ResolutionResults)]
pub(super) struct Results {
    settled: usize,
    results: Vec<ResultOf>,
}

/// What became of one resolution.
#[derive(Serialize, ToSchema)]
#[schema(as = ResolutionResult)]
struct ResultOf {
    operation_id: String,
    /// Whether it is settled by this resolution.
    settled: bool,
    /// Why not: a code as in a problem, or `admin_not_tried` after the store failed for one before.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The operation as it is now, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
}

/// Settles many unknown outcomes, one after the other: each as by itself, with its attempt and version, and with a result of its own.
#[utoipa::path(
    post, path = "/v1/resolutions", operation_id = "resolveOperations", tag = "operations",
    request_body = Resolutions,
    responses(
        (status = 200, description = "What became of each", body = Results),
        (status = 400, description = "Invalid body; nothing was changed", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn resolve_many(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    body: Body,
) -> Result<Json<Results>, AdminProblem> {
    let body = body::read(body, BODY).await?;
    let Resolutions { resolutions } = serde_json::from_slice(&body).map_err(|error| {
        let form = r#"{"resolutions": [{"operation_id": "…", "outcome": "…", "attempt": 1, "version": 2, "reason": "…"}]}"#;
        AdminProblem::body(format!("the body must be JSON, {form}: {error}"))
    })?;
    if resolutions.is_empty() || resolutions.len() > MOST {
        return Err(AdminProblem::body(format!("`resolutions` must have 1 to {MOST} items")));
    }
    let mut parsed = Vec::with_capacity(resolutions.len());
    for (number, resolution) in resolutions.into_iter().enumerate() {
        let id = operation_id(&resolution.operation_id)?;
        let statement = Resolution::from(resolution).statement();
        // What no operation could be told is an invalid body, before anything is done.
        if let Err(error) = statement.clone().checked(StoreResponse::Full) {
            return Err(AdminProblem::body(format!("resolution {} of the list: {error}", number + 1)));
        }
        parsed.push((id, Statement { after_lease: true, ..statement }));
    }
    let (mut results, mut store_failed) = (Vec::with_capacity(parsed.len()), false);
    for (id, statement) in parsed {
        let mut result = ResultOf {
            operation_id: id.to_string(),
            settled: false,
            code: None,
            detail: None,
            operation: None,
        };
        if store_failed {
            result.code = Some("admin_not_tried");
            result.detail = Some("Not tried: the store failed before.".into());
            results.push(result);
            continue;
        }
        match shared.acts.settle_as(AuditAction::BulkItem, &operator, id, statement).await {
            Ok(seen) => {
                result.settled = true;
                result.operation = Some(Operation::of(seen.record, seen.now));
            }
            Err(error) => {
                store_failed = matches!(error, ActError::Unknown(_) | ActError::Store(_));
                (result.code, result.detail) = (Some(error.code()), Some(error.to_string()));
                if let ActError::Moved { seen, .. } | ActError::AttemptMissing { seen, .. } = error {
                    result.operation = Some(Operation::of(seen.record, seen.now));
                }
            }
        }
        results.push(result);
    }
    Ok(Json(Results { settled: results.iter().filter(|result| result.settled).count(), results }))
}

impl From<ResolutionOf> for Resolution {
    fn from(of: ResolutionOf) -> Self {
        Self {
            outcome: of.outcome,
            reason: of.reason,
            response: of.response,
            resource: of.resource,
            operator: of.operator,
            attempt: Some(of.attempt),
            version: Some(of.version),
            ticket: of.ticket,
        }
    }
}
