//! The codes, and what each means on the wire.

use http::StatusCode;
use std::fmt;
use std::time::Duration;

/// Which statuses clients get. The codes and the documents are the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
    /// As the IETF draft on the `Idempotency-Key` header recommends: 422 for a key that stands for something else.
    #[default]
    Ietf,
    /// As Stripe answers, for clients written against it: 400 where the draft has 422.
    Stripe,
}

/// Why a request was not simply answered. The strings are a contract with clients and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The operation requires a key and the request has none.
    KeyMissing,
    /// The request's key does not have the form that a key must have.
    KeyInvalid,
    /// The key already stands for a different request.
    KeyReused,
    /// The first request with this key is still in progress.
    InProgress,
    /// The work may or may not have been done, and nobody knows yet.
    OutcomeUnknown,
    /// The key's window is over: its answer is gone, but not the memory that it was used.
    KeyExpired,
    /// The work was done, but there is no stored answer to replay.
    ResponseNotStored,
    /// It cannot be said whose request this is.
    ScopeUnresolved,
    /// The store did not answer, so nothing was executed.
    StoreUnavailable,
    /// The service could not be reached, so nothing was executed.
    UpstreamUnreachable,
    /// The request's body is larger than the operation accepts.
    RequestTooLarge,
    /// There is a record for this key, and it cannot be read.
    RecordDamaged,
    /// The key is new, and its tenant has as many as it may for now.
    QuotaExceeded,
}

impl Code {
    /// Every code there is.
    pub const ALL: [Self; 13] = [
        Self::KeyMissing,
        Self::KeyInvalid,
        Self::KeyReused,
        Self::InProgress,
        Self::OutcomeUnknown,
        Self::KeyExpired,
        Self::ResponseNotStored,
        Self::ScopeUnresolved,
        Self::StoreUnavailable,
        Self::UpstreamUnreachable,
        Self::RequestTooLarge,
        Self::RecordDamaged,
        Self::QuotaExceeded,
    ];

    /// The code as clients see it, in the document's `code` and at the end of its `type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KeyMissing => "idempotency_key_missing",
            Self::KeyInvalid => "idempotency_key_invalid",
            Self::KeyReused => "idempotency_key_reused_with_different_payload",
            Self::InProgress => "idempotency_key_in_progress",
            Self::OutcomeUnknown => "idempotency_outcome_unknown",
            Self::KeyExpired => "idempotency_key_expired",
            Self::ResponseNotStored => "idempotency_response_not_stored",
            Self::ScopeUnresolved => "idempotency_scope_unresolved",
            Self::StoreUnavailable => "idempotency_store_unavailable",
            Self::UpstreamUnreachable => "idempotency_upstream_unreachable",
            Self::RequestTooLarge => "idempotency_request_too_large",
            Self::RecordDamaged => "idempotency_record_damaged",
            Self::QuotaExceeded => "idempotency_quota_exceeded",
        }
    }

    /// The code in a few words, the same for every occurrence, as RFC 9457 asks.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "Idempotency key missing",
            Self::KeyInvalid => "Idempotency key invalid",
            Self::KeyReused => "Idempotency key reused with a different request",
            Self::InProgress => "Request with this key still in progress",
            Self::OutcomeUnknown => "Outcome unknown",
            Self::KeyExpired => "Idempotency key expired",
            Self::ResponseNotStored => "Response not stored",
            Self::ScopeUnresolved => "Caller not identified",
            Self::StoreUnavailable => "Idempotency store unavailable",
            Self::UpstreamUnreachable => "Service unreachable",
            Self::RequestTooLarge => "Request too large",
            Self::RecordDamaged => "Idempotency record damaged",
            Self::QuotaExceeded => "Quota of idempotency keys exceeded",
        }
    }

    /// The status that goes with the code.
    ///
    /// [`Code::OutcomeUnknown`] has two: this is the one for retries; the request whose own execution ended in doubt
    /// gets 504, see [`Problem::for_first_request`](super::Problem::for_first_request).
    #[must_use]
    pub const fn status(self, profile: Profile) -> StatusCode {
        match self {
            Self::KeyMissing | Self::KeyInvalid => StatusCode::BAD_REQUEST,
            Self::KeyReused | Self::KeyExpired => match profile {
                Profile::Ietf => StatusCode::UNPROCESSABLE_ENTITY,
                Profile::Stripe => StatusCode::BAD_REQUEST,
            },
            Self::InProgress | Self::OutcomeUnknown | Self::ResponseNotStored => StatusCode::CONFLICT,
            Self::ScopeUnresolved => StatusCode::UNAUTHORIZED,
            Self::StoreUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::UpstreamUnreachable => StatusCode::BAD_GATEWAY,
            Self::RequestTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::RecordDamaged => StatusCode::INTERNAL_SERVER_ERROR,
            Self::QuotaExceeded => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// Whether the same request, unchanged, may be sent again with the same key, and can then come out differently.
    ///
    /// Sending again is never *dangerous*, whatever the code: while a key is remembered, no retry with it executes the
    /// work a second time. This says whether a retry loop has a reason to go on:
    /// - in progress, unknown: asking again is how the outcome is learnt;
    /// - store unavailable, upstream unreachable, quota exceeded: nothing was executed, and the fault is not the request's;
    /// - everything else stays as it is until somebody changes something. That includes
    ///   [`Code::ScopeUnresolved`]: the same key is right after authenticating, but the request as it was sent will be
    ///   refused for ever, and a loop that believed otherwise would hammer the authentication.
    #[must_use]
    pub const fn retryable(self) -> bool {
        match self {
            Self::InProgress
            | Self::OutcomeUnknown
            | Self::StoreUnavailable
            | Self::UpstreamUnreachable
            | Self::QuotaExceeded => true,
            Self::KeyMissing
            | Self::KeyInvalid
            | Self::KeyReused
            | Self::KeyExpired
            | Self::ResponseNotStored
            | Self::ScopeUnresolved
            | Self::RequestTooLarge
            | Self::RecordDamaged => false,
        }
    }

    /// The `Retry-After` where nobody who knows the case gave another: no answer that promises one goes without.
    pub(super) const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::InProgress | Self::StoreUnavailable | Self::QuotaExceeded => Some(Duration::from_secs(1)),
            // Where a doubt begins: it grows with its age.
            Self::OutcomeUnknown => Some(Duration::from_secs(2)),
            _ => None,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
