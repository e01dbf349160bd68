//! Problem documents (RFC 9457): the answers to requests that are refused, one [`Code`] each.
//!
//! A code is for programs, its page in `docs/errors/` for people, and [`Problem::detail`] for the reader of this one
//! answer. What belongs in a log (causes, paths, statements) has no place in any of them.
//!
//! ```
//! use semel::OperationId;
//! use semel::problem::{Code, DocsBase, Problem, Profile};
//!
//! let problem = Problem::new(
//!     Code::InProgress,
//!     Profile::Ietf,
//!     "The first request with this key is still in progress.",
//! )
//! .with_operation_id(OperationId::random());
//! let response = problem.into_response(&DocsBase::default());
//!
//! assert_eq!(response.status(), 409);
//! assert_eq!(response.headers()["content-type"], "application/problem+json");
//! assert_eq!(response.headers()["retry-after"], "1");
//! ```

mod code;
mod explanation;
mod format;
mod grpc;
mod plain;
mod profile;
#[cfg(test)]
mod tests;

pub use code::Code;
pub use format::{Format, Template, TemplateError};
pub use grpc::GrpcStatus;
pub use plain::PlainProblem;
pub use profile::Profile;

use crate::{OperationId, Resource, State, Timestamp};
use bytes::Bytes;
use http::{Response, StatusCode};
use std::time::Duration;

/// A problem document without a code, for what is not about idempotency.
///
/// The answer carries the [`PlainProblem`] as an extension, so that a layer that passes it on can put it into another [`Format`].
#[must_use]
pub fn plain(status: StatusCode, retryable: bool, detail: &'static str) -> Response<Bytes> {
    let problem = PlainProblem { status, retryable, detail };
    let mut response = Format::default().plain(&problem);
    response.extensions_mut().insert(problem);
    response
}

/// Where the codes are explained: a code's page is at this base with the code appended.
///
/// The default, `/.well-known/idempotency#`, is the contract that the gateway publishes on its public listener, and a page of the codes
/// that the layer publishes in a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocsBase(String);

impl DocsBase {
    /// A base such as `https://docs.example.com/errors/`.
    ///
    /// # Errors
    /// When a character stands in it that a URI cannot contain: it could not be put between `<` and `>` in a `Link`.
    pub fn new(base: impl Into<String>) -> Result<Self, InvalidDocsBase> {
        let base = base.into();
        match base.chars().find(|&c| !c.is_ascii_graphic() || r#"<>"\^`{|}"#.contains(c)) {
            None => Ok(Self(base)),
            Some(character) => Err(InvalidDocsBase { base, character }),
        }
    }

    /// The address of the code's page.
    #[must_use]
    pub fn page(&self, code: Code) -> String {
        format!("{}{code}", self.0)
    }
}

impl Default for DocsBase {
    fn default() -> Self {
        Self("/.well-known/idempotency#".to_owned())
    }
}

/// A [`DocsBase`] that is not part of any URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{base:?} is not a valid base URL: a URI cannot contain {character:?}; percent-encode it")]
pub struct InvalidDocsBase {
    base: String,
    character: char,
}

/// One problem document, before it is given its form on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// Which problem it is.
    pub code: Code,
    /// The status of the answer, and of the document.
    pub status: StatusCode,
    /// This occurrence in a sentence or two that say what to do. The client reads it: no secrets, no internals.
    pub detail: String,
    /// Whether the same request may be sent again with the same key; see [`Code::retryable`].
    pub retryable: bool,
    /// Whether a new key is safe; see [`Code::safe_new_key`].
    pub safe_new_key: bool,
    /// The operation that the key stands for, where there is one.
    pub operation_id: Option<OperationId>,
    /// How that operation stands, where that is known.
    pub operation_state: Option<State>,
    /// When the key's window is over, where that is known.
    pub expires_at: Option<Timestamp>,
    /// When asking again makes sense. Goes out as `Retry-After`, in whole seconds, rounded up, at least 1.
    pub retry_after: Option<Duration>,
    /// What the service answered, where that left the outcome in doubt.
    pub upstream_status: Option<u16>,
    /// What the operation made, where its answer was not stored: the client can fetch it.
    pub resource: Option<Resource>,
}

impl Problem {
    /// The problem as its code has it by default: status, `retryable`, and `Retry-After` where the code has one.
    #[must_use]
    pub fn new(code: Code, profile: Profile, detail: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(profile),
            detail: detail.into(),
            retryable: code.retryable(),
            safe_new_key: code.safe_new_key(),
            operation_id: None,
            operation_state: match code {
                Code::InProgress => Some(State::InProgress),
                Code::OutcomeUnknown => Some(State::Unknown),
                Code::KeyExpired => Some(State::Expired),
                _ => None,
            },
            expires_at: None,
            retry_after: code.retry_after(),
            upstream_status: None,
            resource: None,
        }
    }

    /// For the request whose own execution ended in doubt: 504 in place of 409.
    ///
    /// To that client it is the gateway's failure to learn the answer. A 503 would be a lie: 503 says that nothing was
    /// executed. Other codes answer the first request as they answer any other, and stay as they are.
    #[must_use]
    pub fn for_first_request(mut self) -> Self {
        if self.code == Code::OutcomeUnknown {
            self.status = StatusCode::GATEWAY_TIMEOUT;
        }
        self
    }

    /// Names the operation that the key stands for.
    #[must_use]
    pub fn with_operation_id(mut self, id: OperationId) -> Self {
        self.operation_id = Some(id);
        self
    }

    /// Says how the operation stands, in place of what the code says of it.
    #[must_use]
    pub fn with_state(mut self, state: State) -> Self {
        self.operation_state = Some(state);
        self
    }

    /// Says when the key's window is over.
    #[must_use]
    pub fn with_expiry(mut self, expires_at: Option<Timestamp>) -> Self {
        self.expires_at = expires_at;
        self
    }

    /// Says that nothing was executed under the key, and that nothing can be any more.
    #[must_use]
    pub fn with_safe_new_key(mut self) -> Self {
        self.safe_new_key = true;
        self
    }

    /// Says when asking again makes sense, in place of the code's default.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Says what the service answered.
    #[must_use]
    pub fn with_upstream_status(mut self, status: u16) -> Self {
        self.upstream_status = Some(status);
        self
    }

    /// Names what the operation made.
    #[must_use]
    pub fn with_resource(mut self, resource: Resource) -> Self {
        self.resource = Some(resource);
        self
    }

    /// Overrides the code's [`Code::retryable`].
    #[must_use]
    pub fn with_retryable(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// The whole answer, as a problem document; [`Format`] has the others.
    #[must_use]
    pub fn into_response(self, docs: &DocsBase) -> Response<Bytes> {
        Format::default().problem(&self, docs)
    }
}

/// Rounded up, so that clients do not retry too early; `Retry-After: 0` would ask for a busy loop.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}
