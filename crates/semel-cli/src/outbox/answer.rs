//! The parts of the API's answers that people are shown. Members that are not known here are passed over: a newer gateway
//! may say more.

use jiff::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) now: Timestamp,
    pub(super) events: Vec<Event>,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Shown {
    pub(super) now: Timestamp,
    #[serde(flatten)]
    pub(super) event: Event,
    pub(super) payload: Option<String>,
    pub(super) payload_base64: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Event {
    pub(super) event_id: String,
    pub(super) aggregate: String,
    pub(super) kind: String,
    pub(super) content_type: String,
    pub(super) state: String,
    #[serde(default)]
    pub(super) dead_letter: bool,
    pub(super) attempts: u32,
    pub(super) last_error: Option<String>,
    pub(super) created: String,
    pub(super) next_attempt: Option<String>,
}

impl Event {
    /// The state in words.
    pub(super) fn standing(&self) -> String {
        self.state.replace('_', " ")
    }
}
