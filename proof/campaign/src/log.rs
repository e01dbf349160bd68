//! What the clients were told.

use crate::plan::Variant;
use serde_json::Value;
use std::time::Duration;

/// One request, and what came of it. All times are of one clock, the clients'.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) operation: u32,
    pub(crate) variant: Variant,
    pub(crate) sent: Duration,
    /// When the answer was there, or the connection broke.
    pub(crate) heard: Duration,
    /// `None`: there was no connection, it broke, or the client had hung up.
    pub(crate) answer: Option<Answer>,
}

/// An answer, as far as a client can see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) content_type: String,
    pub(crate) operation_id: Option<String>,
    pub(crate) body: String,
}

/// What an answer means to whoever sent the request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Meaning {
    Paid,
    Declined,
    /// The key stands for another body.
    Mismatch,
    /// The key is malformed.
    InvalidKey,
    InProgress,
    /// 202: in progress, or unknown.
    Accepted,
    /// Said to a retry.
    Unknown,
    /// Said to whoever executed.
    UnknownToFirst,
    /// The gateway's word that the service was not reached.
    Unreachable,
    NoStore,
    /// The service's word that nothing was done.
    NothingDone,
    /// The service took the request for none: it is forgotten.
    ComeAgain,
    /// The window is over.
    Expired,
    /// What was kept is not what was stored.
    Damaged,
    Undocumented,
}

impl Meaning {
    /// An answer that stays.
    pub(crate) fn is_definite(self) -> bool {
        use Meaning::{Damaged, Declined, Expired, InvalidKey, Mismatch, Paid};
        matches!(self, Paid | Declined | Mismatch | InvalidKey | Expired | Damaged)
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub(crate) fn meaning(&self) -> Meaning {
        let document = self.json();
        match (self.status, document["code"].as_str()) {
            (201, None) => Meaning::Paid,
            (402, Some("card_declined")) => Meaning::Declined,
            (422, Some("idempotency_key_reused_with_different_payload")) => Meaning::Mismatch,
            (400, Some("idempotency_key_invalid")) => Meaning::InvalidKey,
            (202, Some("idempotency_key_in_progress" | "idempotency_outcome_unknown")) => Meaning::Accepted,
            (409, Some("idempotency_key_in_progress")) => Meaning::InProgress,
            (409, Some("idempotency_outcome_unknown")) => Meaning::Unknown,
            (504, Some("idempotency_outcome_unknown")) => Meaning::UnknownToFirst,
            (502, Some("idempotency_upstream_unreachable")) => Meaning::Unreachable,
            (503, Some("idempotency_store_unavailable")) => Meaning::NoStore,
            (503 | 409, Some("nothing_done")) => Meaning::NothingDone,
            (429, Some("come_again")) => Meaning::ComeAgain,
            (422, Some("idempotency_key_expired")) => Meaning::Expired,
            (500, Some("idempotency_record_damaged")) => Meaning::Damaged,
            _ => Meaning::Undocumented,
        }
    }
}
