//! Operations in the API's answers. Unknown members are ignored: a newer gateway may send more.

use jiff::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Listed {
    pub(crate) now: Timestamp,
    pub(crate) operations: Vec<Operation>,
    #[serde(default)]
    pub(crate) damaged: usize,
    pub(crate) next_cursor: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Shown {
    pub(crate) now: Timestamp,
    #[serde(flatten)]
    pub(crate) operation: Operation,
    #[serde(default)]
    pub(crate) history: Vec<HistoryLine>,
}

#[derive(Deserialize)]
pub(crate) struct Operation {
    pub(crate) operation_id: String,
    pub(crate) tenant: String,
    pub(crate) operation: String,
    pub(crate) key: String,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) expired: bool,
    #[serde(default)]
    pub(crate) dead_letter: bool,
    pub(crate) attempt: u32,
    pub(crate) version: u64,
    pub(crate) last_error: Option<String>,
    pub(crate) recovery_point: Option<String>,
    pub(crate) resource: Option<Resource>,
    pub(crate) response: Option<Response>,
    #[serde(default)]
    pub(crate) reconcile_attempts: u32,
    pub(crate) times: Times,
}

#[derive(Deserialize)]
pub(crate) struct Resource {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) id: String,
}

#[derive(Deserialize)]
pub(crate) struct Response {
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    pub(crate) body_bytes: Option<u64>,
}

/// Moments as the API spells them; `never` is one of them.
#[derive(Deserialize)]
pub(crate) struct Times {
    pub(crate) created: String,
    pub(crate) lease_until: String,
    pub(crate) completed: Option<String>,
    pub(crate) expires: Option<String>,
    pub(crate) purge: Option<String>,
    pub(crate) next_reconcile: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct HistoryLine {
    pub(crate) at: String,
    pub(crate) happening: String,
    pub(crate) actor: String,
    pub(crate) attempt: u32,
    pub(crate) note: Option<String>,
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

    pub(crate) fn is_unknown(&self) -> bool {
        self.state == "unknown"
    }
}
