//! The outbox: what waits to be told to others, and what a person does about what its receiver refuses.

use super::document::Moment;
use super::event::UnpublishedEvent;
use super::openapi::{AboutEvent, Guarded, StoreFailed};
use super::problem::{AdminProblem, ProblemDocument};
use super::query::{EventListing, OfEvents, event_id};
use super::{Shared, body};
use crate::acts::Operator;
use crate::identity::Role;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use semel::{Access, StoreError, StoreFuture, Timestamp};
use semel_events::outbox::Entry;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// The body of a request at most: a reason and a name.
const BODY: usize = 64 * 1024;

/// A page of events, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = EventPage)]
struct Listed {
    now: Moment,
    events: Vec<UnpublishedEvent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// One event, with its payload: as text where it is some, else as base64.
#[derive(Serialize, ToSchema)]
#[schema(as = EventWithPayload)]
struct Shown {
    now: Moment,
    #[serde(flatten)]
    event: UnpublishedEvent,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
}

impl Shown {
    fn of(entry: Entry, now: Timestamp) -> Self {
        let bytes = entry.event.payload.clone();
        let (payload, payload_base64) = match std::str::from_utf8(&bytes) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(STANDARD.encode(&bytes))),
        };
        Self { now: now.into(), event: entry.into(), payload, payload_base64 }
    }

    fn without_payload(self) -> Self {
        Self { payload: None, payload_base64: None, ..self }
    }
}

/// What an operator says when an event is taken out.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DropEvent {
    /// Why it is dropped; kept with the event.
    #[schema(min_length = 1, max_length = 2000, pattern = r"\S")]
    reason: String,
    /// The operator's name, where several people share a token. It is logged, not authenticated.
    #[schema(schema_with = super::schemas::operator)]
    operator: Option<String>,
}

/// Lists what is not published yet, newest first.
#[utoipa::path(
    get, path = "/v1/outbox", operation_id = "listEvents", tag = "outbox",
    params(OfEvents),
    responses(
        (status = 200, description = "A page of events", body = Listed),
        (status = 400, description = "Invalid query parameter", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "This store has no outbox", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    RawQuery(query): RawQuery,
) -> Result<Response, AdminProblem> {
    let EventListing { filter, before, limit } = EventListing::read(query.as_deref())?;
    let page = shared.read(shared.acts.outbox(&operator)?.list(filter, before, limit)).await?;
    let last = page.entries.last().map(|entry| entry.event.id.to_string());
    let listed = Listed {
        now: page.now.into(),
        events: page.entries.into_iter().map(UnpublishedEvent::from).collect(),
        next_cursor: last.filter(|_| page.more),
    };
    Ok(Json(listed).into_response())
}

/// Shows one event, to operators with its payload.
#[utoipa::path(
    get, path = "/v1/outbox/{id}", operation_id = "showEvent", tag = "outbox",
    params(AboutEvent),
    responses(
        (status = 200, description = "The event", body = Shown),
        (status = 400, description = "Invalid event id", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No such event, or no outbox", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Result<Response, AdminProblem> {
    let (now, entry) = shared.read(shared.acts.outbox(&operator)?.find(event_id(&id)?)).await?;
    let entry = entry.ok_or_else(AdminProblem::no_such_event)?;
    let shown = Shown::of(entry, now);
    Ok(Json(if operator.identity.role < Role::Operator { shown.without_payload() } else { shown })
        .into_response())
}

/// Sends a dead letter on its way again.
#[utoipa::path(
    post, path = "/v1/outbox/{id}/requeue", operation_id = "requeueEvent", tag = "outbox",
    params(AboutEvent),
    responses(
        (status = 200, description = "Requeued", body = Done),
        (status = 400, description = "Invalid event id", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No such event, or no outbox", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "Not a dead letter", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn requeue(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
) -> Result<Json<Done>, AdminProblem> {
    let entry = shared.acts.requeue(&operator, event_id(&id)?).await?;
    Ok(Json(Done { done: "requeued", event: entry.into() }))
}

/// Takes a dead letter out, with a reason that is kept.
#[utoipa::path(
    post, path = "/v1/outbox/{id}/drop", operation_id = "dropEvent", tag = "outbox",
    params(AboutEvent),
    request_body = DropEvent,
    responses(
        (status = 200, description = "Dropped", body = Done),
        (status = 400, description = "Invalid event id or body", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, description = "No such event, or no outbox", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, description = "Not a dead letter", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded, StoreFailed,
    ),
    security(("token" = []))
)]
pub(super) async fn discard(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Json<Done>, AdminProblem> {
    let id = event_id(&id)?;
    let body = body::read(body, BODY).await?;
    let word: DropEvent = serde_json::from_slice(&body).map_err(|error| {
        AdminProblem::body(format!("the body must be JSON, {{\"reason\": \"…\"}}: {error}"))
    })?;
    let entry = shared.acts.drop_event(&operator, id, &word.reason, word.operator).await?;
    Ok(Json(Done { done: "dropped", event: entry.into() }))
}

/// What an operator did to an event.
#[derive(Serialize, ToSchema)]
#[schema(as = EventDone)]
pub(super) struct Done {
    /// `requeued` or `dropped`.
    done: &'static str,
    #[serde(flatten)]
    event: UnpublishedEvent,
}

impl Shared {
    async fn read<T>(&self, call: StoreFuture<'_, T>) -> Result<T, StoreError> {
        semel::bounded(Access::Read, self.admin.engine.store_timeout(), call).await
    }
}
