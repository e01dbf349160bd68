//! Outbox: events that are not published yet, and what is done about those that were refused.

use super::documents::{Event, EventPage, EventWithPayload};
use super::form::Form;
use super::id::Id;
use super::links::percent_encoded;
use super::moment::Moment;
use super::page::{self, Frame};
use super::visitor::Visitor;
use super::{Console, acted};
use crate::acts::ActError;
use crate::identity::Role;
use askama::Template;
use axum::Extension;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Template)]
#[template(path = "console/outbox.html")]
struct Outbox {
    frame: Frame,
    rows: Vec<Row>,
    next: Option<String>,
    only_dead: bool,
}

struct Row {
    event: Event,
    created: Moment,
    next_attempt: Option<Moment>,
}

impl Row {
    fn of(event: Event, now: &str) -> Self {
        Self {
            created: Moment::new(&event.created, now),
            next_attempt: event.next_attempt.as_deref().map(|at| Moment::new(at, now)),
            event,
        }
    }

    fn badge(&self) -> (&'static str, &'static str) {
        match self.event.state.as_str() {
            "dead_letter" => ("dead", "Dead letter"),
            "retrying" => ("retry", "Retrying"),
            "waiting" => ("over", "Waiting"),
            _ => ("busy", "Pending"),
        }
    }
}

#[derive(Template)]
#[template(path = "console/event.html")]
struct EventScreen {
    frame: Frame,
    row: Row,
    payload: Option<String>,
    is_base64: bool,
    can_requeue: bool,
    can_drop: bool,
}

/// `GET /console/outbox`.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Response {
    let frame = Frame::new(&visitor, "outbox", "Outbox");
    let query = query.unwrap_or_default();
    let told = match console.told::<EventPage>(&visitor, &format!("/v1/outbox?{query}")).await {
        Ok(told) => told,
        Err(refused) => {
            let text = match refused.status {
                StatusCode::NOT_FOUND => "This store has no outbox: there are no events to be published.",
                _ => refused.detail.as_str(),
            };
            return page::told(frame, refused.status, text, None);
        }
    };
    let only_dead = query.contains("dead_letter=true");
    let page = told.value;
    let next = page.next_cursor.map(|cursor| {
        let dead = if only_dead { "dead_letter=true&" } else { "" };
        format!("/console/outbox?{dead}cursor={}", percent_encoded(&cursor))
    });
    let rows = page.events.into_iter().map(|event| Row::of(event, &page.now)).collect();
    page::html(&Outbox { frame: frame.stale_since(told.stale), rows, next, only_dead })
}

/// `GET /console/outbox/{id}`.
pub(super) async fn event(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Response {
    let frame = Frame::new(&visitor, "outbox", "Event");
    let target = format!("/v1/outbox/{}", percent_encoded(&id));
    match console.told::<EventWithPayload>(&visitor, &target).await {
        Ok(told) => {
            let frame = frame.stale_since(told.stale);
            let EventWithPayload { now, event, payload, payload_base64 } = told.value;
            let is_dead = event.dead_letter;
            page::html(&EventScreen {
                can_requeue: is_dead && frame.may(&visitor, Role::Operator),
                can_drop: is_dead && frame.may(&visitor, Role::Admin),
                frame,
                row: Row::of(event, &now),
                is_base64: payload_base64.is_some(),
                payload: payload.or(payload_base64),
            })
        }
        Err(refused) => {
            let link = Some(("/console/outbox", "To the outbox"));
            page::told(frame, refused.status, &refused.detail, link)
        }
    }
}

/// `POST /console/outbox/{id}/requeue`.
pub(super) async fn requeue(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Path(Id(id)): Path<Id>,
) -> Response {
    let acted = console.settings.acts.requeue(&visitor.operator(), id).await;
    done(&visitor, id, acted.map(drop))
}

/// `POST /console/outbox/{id}/drop`.
pub(super) async fn discard(
    State(console): State<Arc<Console>>,
    Extension(visitor): Extension<Visitor>,
    Extension(sent): Extension<Form>,
    Path(Id(id)): Path<Id>,
) -> Response {
    let acted = console.settings.acts.drop_event(&visitor.operator(), id, sent.text("reason"), None).await;
    done(&visitor, id, acted.map(drop))
}

fn done(visitor: &Visitor, id: Uuid, acted: Result<(), ActError>) -> Response {
    match acted {
        Ok(()) => page::see("/console/outbox"),
        Err(error) => {
            let frame = Frame::new(visitor, "outbox", "Event");
            acted::refused(frame, &error, (&format!("/console/outbox/{id}"), "To the event"))
        }
    }
}
