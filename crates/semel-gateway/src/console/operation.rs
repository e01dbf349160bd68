//! One operation: what is known of it, and what its client gets now.

use super::documents::{HistoryLine, Operation, OperationWithHistory};
use super::links::percent_encoded;
use super::moment::Moment;
use super::page::{self, Frame};
use super::visitor::Visitor;
use super::words::{self, StateWords};
use super::{Console, acted};
use crate::identity::Role;
use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::StatusCode;
use semel::OperationId;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "console/operation.html")]
struct OperationScreen {
    frame: Frame,
    operation: Operation,
    state: StateWords,
    created: Moment,
    lease: Moment,
    lease_lives: bool,
    next_poll: Option<Moment>,
    completed: Option<Moment>,
    window: Option<Moment>,
    purge: Option<Moment>,
    lines: Vec<Line>,
    links: Vec<(String, String)>,
    runbook: Option<String>,
    /// What a retry gets now.
    now_gets: &'static str,
    command: String,
    can_settle: bool,
    can_poll: bool,
    can_reveal: bool,
    /// What was just done.
    done: Option<&'static str>,
    audit: String,
}

pub(super) struct Line {
    pub(super) at: Moment,
    pub(super) what: String,
    pub(super) mark: &'static str,
    pub(super) who: String,
    pub(super) attempt: u32,
    pub(super) note: Option<String>,
}

impl Line {
    pub(super) fn of(line: HistoryLine, now: &str) -> Self {
        Self {
            at: Moment::new(&line.at, now),
            what: words::happening(&line.happening).to_owned(),
            mark: words::mark(&line.happening),
            who: words::actor(&line.actor),
            attempt: line.attempt,
            note: line.note,
        }
    }
}

/// What a retry gets, in a sentence.
pub(super) fn now_gets(operation: &Operation, lease_lives: bool) -> &'static str {
    match operation.state.as_str() {
        "in_progress" if lease_lives => {
            "409 idempotency_key_in_progress, or the answer if it waits and the owner finishes in time."
        }
        "in_progress" => "Whatever the route's policy for an owner that is gone says: the lease is over.",
        "unknown" => "409 idempotency_outcome_unknown, with Retry-After. Nothing is executed.",
        "completed" => match operation.response.as_ref().map(|response| response.body.as_str()) {
            Some("stored" | "sealed") => "The stored answer, with Idempotent-Replayed: true.",
            _ => {
                "409 idempotency_response_not_stored: it was executed, and the answer is not there any more."
            }
        },
        "failed_replayable" => "The stored failure, with Idempotent-Replayed: true.",
        "failed_retryable" => "It is executed, as a new attempt: it is proved that nothing happened.",
        _ => "The refusal for an expired key: the window is over.",
    }
}

pub(super) fn path(id: &str) -> String {
    format!("/console/operations/{}", percent_encoded(id))
}

/// `GET /console/operations/{id}`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = Frame::new(&visitor, "operations", "Operation");
    let target = format!("/v1/operations/{}", percent_encoded(&id));
    let told = match console.told::<OperationWithHistory>(&visitor, &target).await {
        Ok(told) => told,
        Err(refused) if refused.status == StatusCode::NOT_FOUND => {
            let audit = format!("/console/audit?target={}", percent_encoded(&id));
            let text = "There is no such operation: it was purged, or never existed. The audit remembers what people did to it.";
            return page::told(frame, refused.status, text, Some((&audit, "Its audit")));
        }
        Err(refused) => {
            let link = Some(("/console/operations", "To the operations"));
            return page::told(frame, refused.status, &refused.detail, link);
        }
    };
    let frame = frame.stale_since(told.stale);
    let OperationWithHistory { now, operation, history } = told.value;
    let moment = |at: &str| Moment::new(at, &now);
    let some = |at: &Option<String>| at.as_deref().map(moment);
    let lease = moment(&operation.times.lease_until);
    let lease_lives = lease.seconds_ago() < 0;
    let is_open = operation.is_unknown();
    let done = match query.as_deref() {
        Some("done=settled") => Some("Settled. The next retry gets the outcome that you named."),
        Some("done=poll") => Some("The provider is asked now. The timeline shows what it says."),
        _ => None,
    };
    let screen = OperationScreen {
        state: words::state(&operation.state, operation.dead_letter),
        created: moment(&operation.times.created),
        next_poll: some(&operation.times.next_reconcile).filter(|_| is_open),
        completed: some(&operation.times.completed),
        window: some(&operation.times.expires),
        purge: some(&operation.times.purge),
        lines: history.into_iter().map(|line| Line::of(line, &now)).collect(),
        links: console
            .settings
            .config
            .links
            .iter()
            .filter_map(|link| Some((link.name.clone(), link.filled(&operation)?)))
            .collect(),
        runbook: console
            .settings
            .config
            .runbooks
            .iter()
            .find(|(name, _)| *name == operation.operation)
            .and_then(|(_, link)| link.filled(&operation)),
        now_gets: now_gets(&operation, lease_lives),
        command: format!("semel operations show {}", operation.operation_id),
        can_settle: is_open && frame.may(&visitor, Role::Operator),
        can_poll: is_open && frame.may(&visitor, Role::Operator),
        can_reveal: frame.may(&visitor, Role::Operator)
            && operation
                .response
                .as_ref()
                .is_some_and(|response| matches!(response.body.as_str(), "stored" | "sealed")),
        audit: format!("/console/audit?target={}", percent_encoded(&operation.operation_id)),
        lease,
        lease_lives,
        frame,
        operation,
        done,
    };
    page::html(&screen)
}

/// `POST /console/operations/{id}/poll`.
pub(super) async fn poll(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let frame = Frame::new(&visitor, "operations", "Poll now");
    let Ok(parsed) = id.parse::<OperationId>() else {
        return page::refused(StatusCode::NOT_FOUND, "There is no such operation.");
    };
    match console.settings.acts.poll_now(&visitor.operator(), parsed, None).await {
        Ok(_) => page::see(&format!("{}?done=poll", path(&id))),
        Err(error) => acted::refused(frame, &error, (&path(&id), "To the operation")),
    }
}

/// `GET /console/operations/{id}/version`: whether it has moved on since the page was made.
pub(super) async fn version(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let target = format!("/v1/operations/{}", percent_encoded(&id));
    match console.api.read::<OperationWithHistory>(&visitor, &target).await {
        Ok(shown) => Json(serde_json::json!({
            "version": shown.operation.version,
            "state": words::state(&shown.operation.state, shown.operation.dead_letter).text,
        }))
        .into_response(),
        Err(refused) => (refused.status, Json(serde_json::json!({}))).into_response(),
    }
}
