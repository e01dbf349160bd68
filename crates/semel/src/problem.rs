//! What a client is told when its request is not simply answered: problem documents (RFC 9457), one [`Code`] each.
//!
//! A code is for programs, its page in `docs/errors/` for people, and [`Problem::detail`] for whoever reads this one
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
mod plain;
#[cfg(test)]
mod tests;

pub use code::{Code, Profile};
pub use plain::plain;

use crate::{OperationId, Resource};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LINK, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use std::time::Duration;

/// Where the codes are explained: a code's page is at this base with the code appended.
///
/// The default, `/.well-known/idempotency#`, is the contract that the gateway publishes on its public listener. A
/// service that uses the library points it to its own documentation.
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
#[error("{base:?} is no base for addresses: a URI cannot contain {character:?}; percent-encode it")]
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
    /// The operation that the key stands for, where there is one.
    pub operation_id: Option<OperationId>,
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
            operation_id: None,
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

    /// The document's bytes. Members that say nothing here are absent, never `null`.
    #[must_use]
    pub fn to_json(&self, docs: &DocsBase) -> Bytes {
        let document = Document {
            kind: docs.page(self.code),
            title: self.code.title(),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: self.code.as_str(),
            retryable: self.retryable,
            operation_id: self.operation_id.map(|id| id.to_string()),
            upstream_status: self.upstream_status,
            resource: self.resource.as_ref().map(|Resource { kind, id }| Made { kind, id }),
        };
        // Strings, numbers and flags, written to memory: there is nothing here that can fail. If it did, the status
        // and the headers would still say the essential.
        serde_json::to_vec(&document).map(Bytes::from).unwrap_or_default()
    }

    /// The whole answer.
    ///
    /// It carries `Cache-Control: no-store`: each of these answers is about one moment of one key, and a cache that kept
    /// it would keep a client from learning the outcome.
    #[must_use]
    pub fn into_response(self, docs: &DocsBase) -> Response<Bytes> {
        let mut response = Response::new(self.to_json(docs));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Never an error: `DocsBase` holds visible ASCII alone, and so do the codes.
        if let Ok(link) = HeaderValue::try_from(format!(r#"<{}>; rel="describedby""#, docs.page(self.code))) {
            headers.insert(LINK, link);
        }
        if let Some(wait) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
        }
        response
    }
}

/// Rounded up, so that whoever comes back then does not come too early; `Retry-After: 0` would ask for a busy loop.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}

/// The members in the order in which a person wants to read them.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Made<'a>>,
}

#[derive(Serialize)]
struct Made<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: &'a str,
}
