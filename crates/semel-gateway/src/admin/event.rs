//! An event of the outbox, as the admin API shows it.

use super::document::Moment;
use semel_events::outbox::Entry;
use serde::Serialize;
use utoipa::ToSchema;

/// One event that is not published yet. Members without a value are absent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(super) struct UnpublishedEvent {
    #[schema(format = "uuid")]
    event_id: String,
    aggregate: String,
    kind: String,
    content_type: String,
    /// `pending`, `waiting` (behind another one), `retrying` or `dead_letter`.
    state: &'static str,
    dead_letter: bool,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    created: Moment,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt: Option<Moment>,
}

impl From<Entry> for UnpublishedEvent {
    fn from(entry: Entry) -> Self {
        let state = match (entry.dead_letter, entry.retry, entry.parked) {
            (true, ..) => "dead_letter",
            (false, Some(_), _) => "retrying",
            (false, None, true) => "waiting",
            (false, None, false) => "pending",
        };
        Self {
            event_id: entry.event.id.to_string(),
            aggregate: entry.event.aggregate,
            kind: entry.event.kind,
            content_type: entry.event.content_type,
            state,
            dead_letter: entry.dead_letter,
            attempts: entry.attempts,
            last_error: entry.last_error,
            created: entry.created.into(),
            next_attempt: entry.retry.map(Moment::from),
        }
    }
}
