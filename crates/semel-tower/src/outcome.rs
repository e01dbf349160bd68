//! What an answer of the service says of the operation.

use http::StatusCode;
use semel::problem::GrpcStatus;
use std::collections::BTreeMap;
use std::str::FromStr;

/// What became of an operation, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OutcomeClass {
    /// It happened.
    Completed,
    /// It failed for good; retries get the failure.
    Failed,
    /// Nothing happened; a retry executes.
    Retryable,
    /// Nothing happened and nothing is remembered.
    Released,
    /// It is unknown whether it happened.
    Unknown,
}

impl OutcomeClass {
    /// Its name, as the configuration, `Semel-Outcome` and the contract spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Retryable => "retryable",
            Self::Released => "released",
            Self::Unknown => "unknown",
        }
    }
}

/// A text that names no outcome class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an outcome is one of completed, failed, retryable, released, unknown")]
pub struct NoOutcome;

impl FromStr for OutcomeClass {
    type Err = NoOutcome;

    fn from_str(word: &str) -> Result<Self, NoOutcome> {
        match word.trim() {
            "completed" => Ok(Self::Completed),
            "failed" => Ok(Self::Failed),
            "retryable" => Ok(Self::Retryable),
            "released" => Ok(Self::Released),
            "unknown" => Ok(Self::Unknown),
            _ => Err(NoOutcome),
        }
    }
}

/// What a status says where the service does not say it better with `Semel-Outcome`.
///
/// By default 2xx and 3xx are completed, and 4xx and 5xx failed, which is replayed, but for these:
///
/// - Released, for they say that the request was not begun: 400, 401, 403, 405, 407, 411, 414, 415, 421, 425, 426, 429 and 431. A client that
///   corrects its request, or comes back later, may use its key.
/// - Unknown, for they are about a server behind the service or about work that was cut off: 408, 499, 502, 503 and 504, and every 5xx that is not
///   registered, as proxies make up their own (520 to 530, 598, 599). So is what no service answers with: 1xx, and anything from 600 on.
#[derive(Clone, Debug, Default)]
pub struct OutcomeRules {
    overrides: BTreeMap<u16, OutcomeClass>,
    calls: BTreeMap<GrpcStatus, OutcomeClass>,
}

impl OutcomeRules {
    /// Takes `status` for `class`.
    #[must_use]
    pub fn with(mut self, status: StatusCode, class: OutcomeClass) -> Self {
        self.overrides.insert(status.as_u16(), class);
        self
    }

    /// Takes the `status` of a gRPC call for `class`.
    #[must_use]
    pub fn with_grpc(mut self, status: GrpcStatus, class: OutcomeClass) -> Self {
        self.calls.insert(status, class);
        self
    }

    /// What the status of a gRPC call says; the HTTP status of its answer says nothing.
    ///
    /// - Completed: `OK`.
    /// - Released, for they say that the call was not begun: `INVALID_ARGUMENT`, `PERMISSION_DENIED`, `UNIMPLEMENTED` and
    ///   `UNAUTHENTICATED`.
    /// - Failed, which is replayed: `NOT_FOUND`, `ALREADY_EXISTS`, `FAILED_PRECONDITION`, `ABORTED` and `OUT_OF_RANGE`.
    /// - Unknown: all others, for they are about work that was cut off, or come from the library or a proxy, with the work done or not. That
    ///   goes for `RESOURCE_EXHAUSTED` too, with which several libraries replace an answer that is too large to be sent. So is a call
    ///   without a status, with two, or with one that is not gRPC's.
    #[must_use]
    pub fn class_of_call(&self, status: Option<GrpcStatus>) -> OutcomeClass {
        use GrpcStatus as Is;
        let Some(status) = status else { return OutcomeClass::Unknown };
        if let Some(class) = self.calls.get(&status) {
            return *class;
        }
        match status {
            Is::Ok => OutcomeClass::Completed,
            Is::InvalidArgument | Is::PermissionDenied | Is::Unimplemented | Is::Unauthenticated => {
                OutcomeClass::Released
            }
            Is::NotFound | Is::AlreadyExists | Is::FailedPrecondition | Is::Aborted | Is::OutOfRange => {
                OutcomeClass::Failed
            }
            Is::Cancelled
            | Is::Unknown
            | Is::DeadlineExceeded
            | Is::ResourceExhausted
            | Is::Internal
            | Is::Unavailable
            | Is::DataLoss => OutcomeClass::Unknown,
        }
    }

    /// What `status` says.
    #[must_use]
    pub fn class_of(&self, status: StatusCode) -> OutcomeClass {
        if let Some(class) = self.overrides.get(&status.as_u16()) {
            return *class;
        }
        match status.as_u16() {
            200..=399 => OutcomeClass::Completed,
            400 | 401 | 403 | 405 | 407 | 411 | 414 | 415 | 421 | 425 | 426 | 429 | 431 => {
                OutcomeClass::Released
            }
            408 | 499 => OutcomeClass::Unknown,
            400..=499 | 500 | 501 | 505..=508 | 510 | 511 => OutcomeClass::Failed,
            _ => OutcomeClass::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_class() {
        let rules = OutcomeRules::default();
        let of = |status: u16| rules.class_of(StatusCode::from_u16(status).unwrap());
        for status in [200, 201, 202, 204, 301, 302, 303, 307, 308] {
            assert_eq!(of(status), OutcomeClass::Completed, "{status}");
        }
        for status in [400, 401, 403, 405, 407, 411, 414, 415, 421, 425, 426, 429, 431] {
            assert_eq!(of(status), OutcomeClass::Released, "{status}");
        }
        for status in [402, 404, 406, 409, 410, 412, 413, 416, 417, 418, 422, 423, 424, 428, 451] {
            assert_eq!(of(status), OutcomeClass::Failed, "{status}");
        }
        for status in [500, 501, 505, 506, 507, 508, 510, 511] {
            assert_eq!(of(status), OutcomeClass::Failed, "{status}");
        }
        for status in [100, 101, 103, 408, 499, 502, 503, 504, 509, 520, 522, 524, 530, 598, 599, 600, 999] {
            assert_eq!(of(status), OutcomeClass::Unknown, "{status}");
        }
    }

    #[test]
    fn an_override_beats_the_default() {
        let rules = OutcomeRules::default().with(StatusCode::SERVICE_UNAVAILABLE, OutcomeClass::Retryable);
        assert_eq!(rules.class_of(StatusCode::SERVICE_UNAVAILABLE), OutcomeClass::Retryable);
        assert_eq!(rules.class_of(StatusCode::BAD_GATEWAY), OutcomeClass::Unknown);
    }

    #[test]
    fn each_status_of_a_call_has_its_class() {
        let rules = OutcomeRules::default();
        let numbers = |class| -> Vec<u16> {
            let of = GrpcStatus::ALL.into_iter().filter(|status| rules.class_of_call(Some(*status)) == class);
            of.map(GrpcStatus::number).collect()
        };
        assert_eq!(numbers(OutcomeClass::Completed), [0]);
        assert_eq!(numbers(OutcomeClass::Released), [3, 7, 12, 16]);
        assert_eq!(numbers(OutcomeClass::Failed), [5, 6, 9, 10, 11]);
        assert_eq!(numbers(OutcomeClass::Unknown), [1, 2, 4, 8, 13, 14, 15]);
        assert_eq!(rules.class_of_call(None), OutcomeClass::Unknown);
        let told = rules.with_grpc(GrpcStatus::ResourceExhausted, OutcomeClass::Released);
        assert_eq!(told.class_of_call(Some(GrpcStatus::ResourceExhausted)), OutcomeClass::Released);
    }

    #[test]
    fn a_word_that_is_no_outcome_is_refused() {
        assert_eq!("Completed".parse::<OutcomeClass>(), Err(NoOutcome));
        assert_eq!(" retryable ".parse::<OutcomeClass>(), Ok(OutcomeClass::Retryable));
    }
}
