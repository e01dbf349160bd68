//! Why there is no answer.

use std::io;
use std::time::Duration;

/// Why a request has no answer. Messages name the host, never what was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no connection: nothing was sent.
    #[error("{reason}: {authority}", reason = reason(error))]
    Connect {
        /// Host and port.
        authority: String,
        /// What the system, or TLS, says.
        error: io::Error,
    },
    /// The connection broke: the request may have been received or not.
    #[error("connection to {authority} broke: {error}")]
    Broken {
        /// Host and port.
        authority: String,
        /// What broke.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke in the middle of the answer: the request was received.
    #[error("incomplete answer from {authority}: {error}")]
    Truncated {
        /// Host and port.
        authority: String,
        /// What broke.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer is longer than what is read.
    #[error("the answer of {authority} is longer than {limit} bytes")]
    TooLong {
        /// Host and port.
        authority: String,
        /// The limit.
        limit: usize,
    },
    /// There was no answer in time: the request may have been received or not.
    #[error("no answer from {authority} within {after:?}")]
    Timeout {
        /// Host and port.
        authority: String,
        /// The deadline.
        after: Duration,
    },
}

impl Error {
    /// Whether it is certain that nothing was sent.
    #[must_use]
    pub fn nothing_sent(&self) -> bool {
        matches!(self, Self::Connect { .. })
    }
}

/// The system's own words, for what happens most often.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::HostUnreachable => "host unreachable".into(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".into(),
        io::ErrorKind::TimedOut => "connection timed out".into(),
        _ => error.to_string(),
    }
}
