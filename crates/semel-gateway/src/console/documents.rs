//! The API's documents, as far as pages show them.

use serde::Deserialize;

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Operation {
    pub(super) operation_id: String,
    pub(super) tenant: String,
    pub(super) operation: String,
    pub(super) key: String,
    pub(super) state: String,
    pub(super) expired: bool,
    pub(super) dead_letter: bool,
    pub(super) attempt: u32,
    pub(super) version: u64,
    pub(super) last_error: Option<String>,
    pub(super) recovery_point: Option<String>,
    pub(super) resource: Option<Resource>,
    pub(super) response: Option<KeptResponse>,
    pub(super) reconcile_attempts: u32,
    pub(super) times: Times,
}

impl Operation {
    pub(super) fn is_unknown(&self) -> bool {
        self.state == "unknown"
    }

    /// What has to be typed to confirm that it was not executed.
    pub(super) fn last_six(&self) -> &str {
        let from = self.operation_id.len().saturating_sub(6);
        self.operation_id.get(from..).unwrap_or_default()
    }
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Resource {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: String,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct KeptResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<String>,
    pub(super) body: String,
    pub(super) body_bytes: Option<usize>,
    pub(super) sealed_by: Option<String>,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Times {
    pub(super) created: String,
    pub(super) lease_until: String,
    pub(super) completed: Option<String>,
    pub(super) expires: Option<String>,
    pub(super) purge: Option<String>,
    pub(super) next_reconcile: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct OperationPage {
    pub(super) now: String,
    pub(super) operations: Vec<Operation>,
    pub(super) damaged: usize,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct OperationWithHistory {
    pub(super) now: String,
    #[serde(flatten)]
    pub(super) operation: Operation,
    pub(super) history: Vec<HistoryLine>,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct HistoryLine {
    pub(super) at: String,
    pub(super) version: u64,
    pub(super) happening: String,
    pub(super) actor: String,
    pub(super) attempt: u32,
    pub(super) note: Option<String>,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Open {
    pub(super) in_progress: u64,
    pub(super) unknown: u64,
    pub(super) unknown_oldest_seconds: f64,
    pub(super) dead_letters: u64,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Stats {
    pub(super) version: String,
    pub(super) executing_here: usize,
    pub(super) complete: bool,
    pub(super) damaged: u64,
    pub(super) operations: std::collections::BTreeMap<String, Open>,
    #[serde(flatten)]
    pub(super) total: Open,
    pub(super) outbox: Option<OutboxStats>,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct OutboxStats {
    pub(super) backlog: u64,
    pub(super) oldest_seconds: f64,
    pub(super) dead_letters: u64,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Clock {
    pub(super) held: bool,
    pub(super) hold_seconds: u64,
    pub(super) synchronised: Option<bool>,
    pub(super) wrong: Option<String>,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Event {
    pub(super) event_id: String,
    pub(super) aggregate: String,
    pub(super) kind: String,
    pub(super) state: String,
    pub(super) dead_letter: bool,
    pub(super) attempts: u32,
    pub(super) last_error: Option<String>,
    pub(super) created: String,
    pub(super) next_attempt: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct EventPage {
    pub(super) now: String,
    pub(super) events: Vec<Event>,
    pub(super) next_cursor: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct EventWithPayload {
    pub(super) now: String,
    #[serde(flatten)]
    pub(super) event: Event,
    pub(super) payload: Option<String>,
    pub(super) payload_base64: Option<String>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct AuditPage {
    pub(super) now: String,
    pub(super) entries: Vec<AuditEntry>,
    pub(super) next_cursor: Option<String>,
}

#[derive(Clone, Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct AuditEntry {
    pub(super) at: String,
    pub(super) actor: String,
    pub(super) action: String,
    pub(super) result: String,
    pub(super) target: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) role: Option<String>,
    pub(super) peer: Option<String>,
    pub(super) via: Option<String>,
    pub(super) state_before: Option<String>,
    pub(super) state_after: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) refusal: Option<String>,
    pub(super) note: Option<String>,
}
