//! Lists operations, and shows one with its history.

use super::Shared;
use super::document::{Line, Moment, Operation};
use super::openapi::{AboutOperation, Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use super::query::{Listing, OfOperations, cursor_text, operation_id};
use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use semel::{HistoryLine, OperationId, Record, StoreError, StoreFuture, Timestamp};
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
    #[serde(skip_serializing_if = "is_none")]
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
    history: Option<Vec<Line>>,
}

impl Shown {
    pub(super) fn of(record: Record, now: Timestamp, history: Option<Vec<HistoryLine>>) -> Self {
        let history = history.map(|lines| lines.into_iter().map(Line::from).collect());
        Self { now: now.into(), operation: Operation::of(record, now), history }
    }
}

/// Lists operations, newest first.
#[utoipa::path(
    get, path = "/v1/operations", operation_id = "listOperations", tag = "operations",
    params(OfOperations),
    responses(
        (status = 200, description = "A page of them", body = Listed),
        (status = 400, description = "A parameter says what it cannot say", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let Listing { filter, from, limit } = Listing::read(query.as_deref())?;
    let store = shared.admin.engine.store();
    let now = shared.in_time(store.read(Vec::new())).await?.now;
    let page = shared.in_time(store.list(filter, from, limit)).await?;
    let listed = Listed {
        now: now.into(),
        operations: page.records.into_iter().map(|record| Operation::of(record, now)).collect(),
        damaged: page.damaged,
        next_cursor: page.next.map(cursor_text),
    };
    Ok(Json(listed).into_response())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Shows one operation with its history.
#[utoipa::path(
    get, path = "/v1/operations/{id}", operation_id = "showOperation", tag = "operations",
    params(AboutOperation),
    responses(
        (status = 200, description = "The operation", body = Shown),
        (status = 400, description = "This is no operation's id", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "There is no such operation", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
) -> Result<Response, AdminProblem> {
    let (now, record) = shared.admin.engine.find(operation_id(&id)?).await?;
    let record = record.ok_or_else(AdminProblem::no_such_operation)?;
    let history = shared.history(record.operation_id).await?;
    Ok(Json(Shown::of(record, now, Some(history))).into_response())
}

impl Shared {
    pub(super) async fn history(&self, id: OperationId) -> Result<Vec<HistoryLine>, StoreError> {
        self.in_time(self.admin.engine.store().history(id)).await
    }

    pub(super) async fn in_time<T>(&self, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        tokio::time::timeout(self.admin.engine.store_timeout(), call)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the store did not answer in time".into())))
    }
}
