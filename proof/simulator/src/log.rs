//! What the clients were told.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Which of an operation's requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Variant {
    Plain,
    /// Another body under the same key.
    Altered,
    /// Another tenant's request under the same key.
    Neighbour,
    /// The key is malformed.
    Malformed,
}

/// One request, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) number: u32,
    pub(crate) variant: Variant,
    pub(crate) sent: u64,
    pub(crate) heard: u64,
    /// `None`: no answer.
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) replayed: bool,
    pub(crate) operation_id: Option<String>,
    /// The fields of the header that a replay has to have as well.
    pub(crate) kept: Vec<(HeaderName, HeaderValue)>,
    /// Whether it sets a cookie, which is one caller's.
    pub(crate) sets_cookie: bool,
    pub(crate) body: Bytes,
    pub(crate) meaning: Meaning,
}

/// The fields of an answer that are kept for retries, in order.
pub(crate) fn kept(headers: &HeaderMap) -> Vec<(HeaderName, HeaderValue)> {
    let names = ["content-type", "content-language", "etag", "link", "location"].map(HeaderName::from_static);
    let of = |name: HeaderName| headers.get_all(&name).iter().map(move |value| (name.clone(), value.clone()));
    names.into_iter().flat_map(of).collect()
}

/// What an answer means to whoever sent the request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Meaning {
    Paid,
    Declined,
    /// It has ended, and the answer is not kept.
    NotStored,
    Mismatch,
    InvalidKey,
    InProgress,
    Unknown,
    /// Said to whoever executed.
    UnknownToFirst,
    NoStore,
    /// The service's word, or the gateway's, that nothing was done.
    NothingDone,
    /// The service took the request for none: it is forgotten.
    ComeAgain,
    QuotaExceeded,
    Expired,
    Damaged,
    Undocumented,
}

impl Meaning {
    /// An answer that stays.
    pub(crate) fn is_definite(self) -> bool {
        self.is_outcome() || matches!(self, Self::Mismatch | Self::InvalidKey | Self::Expired | Self::Damaged)
    }

    /// How the operation ended.
    pub(crate) fn is_outcome(self) -> bool {
        matches!(self, Self::Paid | Self::Declined | Self::NotStored)
    }

    pub(crate) fn of(status: u16, accepted: bool, body: &[u8]) -> Self {
        let text = std::str::from_utf8(body).unwrap_or_default();
        let after = text.split_once("\"code\":\"").map(|(_, rest)| rest);
        let code = after.and_then(|rest| rest.split('"').next());
        let pending = if accepted { 202 } else { 409 };
        match (status, code) {
            (201, None) => Self::Paid,
            (402, Some("card_declined")) => Self::Declined,
            (409 | 410, Some("idempotency_response_not_stored")) => Self::NotStored,
            (422, Some("idempotency_key_reused_with_different_payload")) => Self::Mismatch,
            (400, Some("idempotency_key_invalid")) => Self::InvalidKey,
            (status, Some("idempotency_key_in_progress")) if status == pending => Self::InProgress,
            (504, Some("idempotency_outcome_unknown")) => Self::UnknownToFirst,
            (status, Some("idempotency_outcome_unknown")) if status == pending || status == 409 => {
                Self::Unknown
            }
            (503, Some("idempotency_store_unavailable")) => Self::NoStore,
            (503, Some("nothing_done")) => Self::NothingDone,
            (429, Some("come_again")) => Self::ComeAgain,
            (429, Some("idempotency_quota_exceeded")) => Self::QuotaExceeded,
            (422, Some("idempotency_key_expired")) => Self::Expired,
            (500, Some("idempotency_record_damaged")) => Self::Damaged,
            _ => Self::Undocumented,
        }
    }
}
