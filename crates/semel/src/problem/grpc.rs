//! The statuses of gRPC, and which of them each code has.

use super::{Code, PlainProblem, Problem};
use http::StatusCode;
use std::fmt;

/// How a gRPC call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "gRPC's own names, which its documentation explains")]
pub enum GrpcStatus {
    Ok = 0,
    Cancelled = 1,
    Unknown = 2,
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    NotFound = 5,
    AlreadyExists = 6,
    PermissionDenied = 7,
    ResourceExhausted = 8,
    FailedPrecondition = 9,
    Aborted = 10,
    OutOfRange = 11,
    Unimplemented = 12,
    Internal = 13,
    Unavailable = 14,
    DataLoss = 15,
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// Every status, by its number.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Its number, as `grpc-status` has it.
    #[must_use]
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The status of this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// Its name, as gRPC's documentation spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for GrpcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Code {
    /// The status that gRPC clients get with the code.
    ///
    /// What may be sent again with the same key is `UNAVAILABLE`: retries that a client's library makes by itself keep the metadata, and
    /// with it the key. `ABORTED` would invite the application to begin again, with a new one.
    #[must_use]
    pub const fn grpc_status(self) -> GrpcStatus {
        match self {
            Self::InProgress | Self::OutcomeUnknown | Self::StoreUnavailable | Self::UpstreamUnreachable => {
                GrpcStatus::Unavailable
            }
            Self::KeyReused | Self::KeyExpired => GrpcStatus::FailedPrecondition,
            Self::KeyMissing | Self::KeyInvalid => GrpcStatus::InvalidArgument,
            Self::ResponseNotStored => GrpcStatus::AlreadyExists,
            Self::ScopeUnresolved => GrpcStatus::Unauthenticated,
            // As gRPC's libraries answer a message that is too large.
            Self::QuotaExceeded | Self::RequestTooLarge => GrpcStatus::ResourceExhausted,
            Self::RecordDamaged => GrpcStatus::DataLoss,
        }
    }
}

impl Problem {
    /// The status that gRPC clients get.
    #[must_use]
    pub fn grpc_status(&self) -> GrpcStatus {
        match self.code {
            // Who is asked about the caller cannot answer: the caller need not authenticate again.
            Code::ScopeUnresolved if self.retryable => GrpcStatus::Unavailable,
            code => code.grpc_status(),
        }
    }
}

impl PlainProblem {
    /// The status that gRPC clients get. One on which libraries retry by themselves goes only with what may be sent again.
    #[must_use]
    pub fn grpc_status(&self) -> GrpcStatus {
        match self.status {
            StatusCode::UNAUTHORIZED => GrpcStatus::Unauthenticated,
            StatusCode::FORBIDDEN => GrpcStatus::PermissionDenied,
            StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED => GrpcStatus::Unimplemented,
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => GrpcStatus::ResourceExhausted,
            _ if self.retryable => GrpcStatus::Unavailable,
            StatusCode::GATEWAY_TIMEOUT => GrpcStatus::DeadlineExceeded,
            status if status.is_client_error() => GrpcStatus::InvalidArgument,
            _ => GrpcStatus::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_status() {
        let table = [
            ("idempotency_key_missing", "INVALID_ARGUMENT"),
            ("idempotency_key_invalid", "INVALID_ARGUMENT"),
            ("idempotency_key_reused_with_different_payload", "FAILED_PRECONDITION"),
            ("idempotency_key_in_progress", "UNAVAILABLE"),
            ("idempotency_outcome_unknown", "UNAVAILABLE"),
            ("idempotency_key_expired", "FAILED_PRECONDITION"),
            ("idempotency_response_not_stored", "ALREADY_EXISTS"),
            ("idempotency_scope_unresolved", "UNAUTHENTICATED"),
            ("idempotency_store_unavailable", "UNAVAILABLE"),
            ("idempotency_upstream_unreachable", "UNAVAILABLE"),
            ("idempotency_request_too_large", "RESOURCE_EXHAUSTED"),
            ("idempotency_record_damaged", "DATA_LOSS"),
            ("idempotency_quota_exceeded", "RESOURCE_EXHAUSTED"),
        ];
        assert_eq!(Code::ALL.map(|code| (code.as_str(), code.grpc_status().as_str())), table);
    }

    #[test]
    fn a_status_on_which_libraries_retry_goes_with_what_may_be_sent_again() {
        for code in Code::ALL {
            let retried = code.grpc_status() == GrpcStatus::Unavailable;
            assert!(!retried || code.retryable(), "{code}");
        }
        for status in (400..=599).filter_map(|status| StatusCode::from_u16(status).ok()) {
            let problem = PlainProblem { status, retryable: false, detail: "" };
            assert_ne!(problem.grpc_status(), GrpcStatus::Unavailable, "{status}");
        }
    }

    #[test]
    fn statuses_have_the_numbers_of_grpc() {
        for (number, status) in (0..).zip(GrpcStatus::ALL) {
            assert_eq!((status.number(), GrpcStatus::from_number(number)), (number, Some(status)));
        }
        assert_eq!(GrpcStatus::from_number(17), None);
        assert_eq!(GrpcStatus::from_number(14).map(GrpcStatus::as_str), Some("UNAVAILABLE"));
    }
}
