//! Problems that are not about idempotency.

use http::StatusCode;

/// A refusal without a code: a server that is too busy, say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainProblem {
    /// The status of the answer.
    pub status: StatusCode,
    /// Whether the same request may be sent again.
    pub retryable: bool,
    /// This occurrence in a sentence or two. The client reads it.
    pub detail: &'static str,
}
