//! The parts of the API's answers that people are shown. Members that are not known here are passed over: a newer gateway
//! may say more.

use jiff::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) now: Timestamp,
    pub(super) operations: Vec<Operation>,
    #[serde(default)]
    pub(super) damaged: usize,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Shown {
    pub(super) now: Timestamp,
    #[serde(flatten)]
    pub(super) operation: Operation,
    #[serde(default)]
    pub(super) history: Vec<Line>,
}

#[derive(Deserialize)]
pub(crate) struct Operation {
    pub(super) operation_id: String,
    pub(super) tenant: String,
    pub(super) operation: String,
    pub(super) key: String,
    pub(super) state: String,
    #[serde(default)]
    pub(super) expired: bool,
    #[serde(default)]
    pub(super) dead_letter: bool,
    pub(crate) attempt: u32,
    pub(crate) version: u64,
    pub(super) last_error: Option<String>,
    pub(super) recovery_point: Option<String>,
    pub(super) resource: Option<Resource>,
    pub(super) response: Option<Response>,
    #[serde(default)]
    pub(super) reconcile_attempts: u32,
    pub(super) times: Times,
}

#[derive(Deserialize)]
pub(super) struct Resource {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: String,
}

#[derive(Deserialize)]
pub(super) struct Response {
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: Vec<String>,
    pub(super) body: String,
    pub(super) body_bytes: Option<u64>,
}

/// Moments as the API spells them; `never` is one of them.
#[derive(Deserialize)]
pub(super) struct Times {
    pub(super) created: String,
    pub(super) lease_until: String,
    pub(super) completed: Option<String>,
    pub(super) expires: Option<String>,
    pub(super) purge: Option<String>,
    pub(super) next_reconcile: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Line {
    pub(super) at: String,
    pub(super) happening: String,
    pub(super) actor: String,
    pub(super) attempt: u32,
    pub(super) note: Option<String>,
}

impl Operation {
    /// The state, and what else there is to say of it.
    pub(crate) fn standing(&self) -> String {
        let mut words = self.state.clone();
        if self.dead_letter {
            words.push_str(", dead letter");
        }
        if self.expired && self.state != "expired" {
            words.push_str(", expired");
        }
        words
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.state == "unknown"
    }
}
