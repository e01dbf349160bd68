//! How an attempt ends, as its owner says it.

use crate::record::{Resource, StoredResponse};

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It happened.
    Completed {
        /// What retries get; `None` where nothing is to be kept.
        response: Option<StoredResponse>,
        /// What was made.
        resource: Option<Resource>,
    },
    /// It failed for good, and retries get the failure.
    Failed {
        /// What retries get; `None` where nothing is to be kept.
        response: Option<StoredResponse>,
        /// What it concerns.
        resource: Option<Resource>,
    },
    /// It is proved that nothing happened: a retry executes.
    Retryable {
        /// A code for what went wrong.
        error: String,
    },
    /// Nothing happened and nothing is to be remembered: malformed, unauthenticated, rate-limited.
    Released,
    /// It is unknown whether it happened.
    Unknown {
        /// A code for what went wrong.
        error: String,
    },
}

impl Outcome {
    /// Its name, as traces spell it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Failed { .. } => "failed",
            Self::Retryable { .. } => "retryable",
            Self::Released => "released",
            Self::Unknown { .. } => "unknown",
        }
    }
}
