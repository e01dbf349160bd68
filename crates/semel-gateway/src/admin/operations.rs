//! Lists operations, and shows one with its history.

use super::Shared;
use super::document::{HistoryDocument, Moment, Operation};
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use super::query::{Listing, OfOneOperation, OfOperations, operation_id, wants_full_key};
use crate::acts::{Operator, Seen};
use crate::identity::Identity;
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
    #[serde(skip_serializing_if = "super::document::is_zero")]
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
    let page = shared.select(&identity, &selection.at(now), from, limit).await?;
    let mut operations = Vec::with_capacity(page.records.len());
    for record in page.records {
        operations.push(Operation::of(shared.acts.with_client_key(record).await, now));
    }
    let listed = Listed {
        now: now.into(),
        operations,
        damaged: page.damaged,
        next_cursor: page.next.map(|cursor| cursor.as_str().to_owned()),
    };
    Ok(Json(listed).into_response())
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
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let id = operation_id(&id)?;
    let full_key = wants_full_key(query.as_deref())?;
    let Seen { record, now } = match full_key {
        true => shared.acts.reveal_key(&operator, id).await?,
        false => shared.acts.seen(&operator, id).await?,
    };
    let history = shared.history(record.operation_id).await?;
    let key = full_key.then(|| record.key.key.to_string());
    let shown = Shown::of(record, now, Some(history));
    Ok(Json(match key {
        Some(key) => shown.with_key(key),
        None => shown,
    })
    .into_response())
}

impl Shared {
    pub(super) async fn history(&self, id: OperationId) -> Result<Vec<HistoryLine>, StoreError> {
        self.admin.engine.store().history(id).await
    }
}
