//! Lists operations, and shows one with its history.

use super::Shared;
use super::access::lacks;
use super::document::{HistoryDocument, Moment, Operation};
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use super::query::{Listing, OfOneOperation, OfOperations, cursor_text, operation_id, wants_full_key};
use crate::identity::{Identity, Role};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use semel::{HistoryLine, OperationId, Record, StoreError, Timestamp};
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// A page of operations, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = OperationPage)]
struct Listed {
    now: Moment,
    operations: Vec<Operation>,
    /// How many more there are on this page that cannot be read.
    #[serde(skip_serializing_if = "is_zero")]
    damaged: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One operation, with its history where that could be read.
#[derive(Serialize, ToSchema)]
#[schema(as = OperationWithHistory)]
pub(super) struct Shown {
    now: Moment,
    #[serde(flatten)]
    operation: Operation,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<HistoryDocument>>,
}

impl Shown {
    pub(super) fn of(record: Record, now: Timestamp, history: Option<Vec<HistoryLine>>) -> Self {
        let history = history.map(|lines| lines.into_iter().map(HistoryDocument::from).collect());
        Self { now: now.into(), operation: Operation::of(record, now), history }
    }

    fn with_key(self, key: String) -> Self {
        Self { operation: self.operation.with_key(key), ..self }
    }
}

/// Lists operations, newest first.
#[utoipa::path(
    get, path = "/v1/operations", operation_id = "listOperations", tag = "operations",
    params(OfOperations),
    responses(
        (status = 200, description = "A page of operations", body = Listed),
        (status = 400, description = "Invalid query parameter", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let Listing { selection, from, limit } = Listing::read(query.as_deref())?;
    let now = shared.admin.engine.store().now().await?.earliest;
    let page = shared.select(&identity, &selection, from, limit).await?;
    let mut operations = Vec::with_capacity(page.records.len());
    for record in page.records {
        operations.push(Operation::of(shared.with_client_key(record).await, now));
    }
    let listed = Listed {
        now: now.into(),
        operations,
        damaged: page.damaged,
        next_cursor: page.next.map(cursor_text),
    };
    Ok(Json(listed).into_response())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Shows one operation with its history.
#[utoipa::path(
    get, path = "/v1/operations/{id}", operation_id = "showOperation", tag = "operations",
    params(AboutOperation, OfOneOperation),
    responses(
        (status = 200, description = "The operation", body = Shown),
        (status = 400, description = "Invalid operation id or query parameter", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such operation", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let id = operation_id(&id)?;
    let full_key = wants_full_key(query.as_deref())?;
    if full_key && identity.role < Role::Operator {
        return Err(lacks(&identity, Role::Operator));
    }
    let (now, record) = shared.admin.engine.find(id).await?;
    let record = seen(&identity, record)?;
    let history = shared.history(record.operation_id).await?;
    let record = shared.with_client_key(record).await;
    let key = full_key.then(|| record.key.key.to_string());
    let shown = Shown::of(record, now, Some(history));
    Ok(Json(match key {
        Some(key) => shown.with_key(key),
        None => shown,
    })
    .into_response())
}

/// The record, if this user may see it. Whether another tenant has such a record is not revealed.
pub(super) fn seen(identity: &Identity, record: Option<Record>) -> Result<Record, AdminProblem> {
    let seen = record.filter(|record| identity.tenants.allow(&record.key.tenant));
    seen.ok_or_else(AdminProblem::no_such_operation)
}

impl Shared {
    /// The record with the key that the client sent. One that cannot be had does not hide the rest.
    pub(super) async fn with_client_key(&self, mut record: Record) -> Record {
        match self.admin.engine.client_key(&record).await {
            Ok(key) => record.key = key,
            Err(error) => {
                tracing::warn!(%error, "a client's key cannot be decrypted");
                record.key.key = "(sealed)".into();
            }
        }
        record
    }

    pub(super) async fn history(&self, id: OperationId) -> Result<Vec<HistoryLine>, StoreError> {
        self.admin.engine.store().history(id).await
    }
}
