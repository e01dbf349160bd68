//! The codes, and what each means on the wire.

use std::fmt;
use std::time::Duration;

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
    /// It is not known yet whether the work was done.
    OutcomeUnknown,
    /// The key's window is over: its answer is gone, but not the memory that it was used.
    KeyExpired,
    /// The work was done, but there is no stored answer to replay.
    ResponseNotStored,
    /// The caller could not be identified.
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

    /// The name by which a configuration sets the code's status: the code without its first word.
    #[must_use]
    pub fn setting(self) -> &'static str {
        match self {
            Self::KeyReused => "key_reused",
            Self::InProgress => "in_progress",
            _ => self.as_str().trim_start_matches("idempotency_"),
        }
    }

    /// Whether a client that gets this may use a new key without risking a second execution: nothing was executed under the key, and
    /// nothing can be any more.
    #[must_use]
    pub const fn safe_new_key(self) -> bool {
        matches!(self, Self::KeyMissing | Self::KeyInvalid | Self::QuotaExceeded)
    }

    /// Whether the same request, unchanged, may be sent again with the same key, and can then come out differently.
    ///
    /// Sending again is never *dangerous*, whatever the code: while a key is remembered, no retry with it executes the
    /// work a second time. This says whether a retry loop has a reason to go on:
    /// - in progress, unknown: asking again is how the outcome is learnt;
    /// - store unavailable, upstream unreachable, quota exceeded: nothing was executed, and the fault is not the request's;
    /// - everything else stays as it is until the cause is removed. That includes
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

    /// The default `Retry-After` of retryable codes.
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
