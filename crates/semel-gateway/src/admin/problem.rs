//! What an operator is told when something is in the way: RFC 9457 documents, as clients get them.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use semel::StoreError;
use serde_json::{Map, Value};

/// One problem document.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    /// More members of the document.
    more: Map<String, Value>,
    challenge: Option<&'static str>,
}

impl AdminProblem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), more: Map::new(), challenge: None }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.into(), value.into());
        self
    }

    /// Whoever asks has to show a token first.
    pub(super) fn unauthorized(challenge: &'static str, detail: &str) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "admin_unauthorized", detail);
        problem.challenge = Some(challenge);
        problem
    }

    pub(super) fn forbidden(detail: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "admin_forbidden", detail)
    }

    /// A parameter of the address says something that it cannot say.
    pub(super) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "admin_parameter_invalid", detail).with("parameter", name)
    }

    /// The body is not what it has to be.
    pub(super) fn body(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "admin_body_invalid", detail)
    }

    pub(super) fn body_too_large(most: usize) -> Self {
        let detail = format!("The body broke off, or is longer than {most} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "admin_body_too_large", detail)
    }

    pub(super) fn no_such_operation() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_such_operation",
            "There is no operation with this id: it never existed, was released, or its time is over.",
        )
    }

    pub(super) fn no_such_event() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_such_event",
            "There is no event with this id in the outbox: it was published, dropped, or never appended.",
        )
    }

    pub(super) fn no_outbox() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_outbox",
            "This store has no outbox: sqlite: and postgres:// stores have one.",
        )
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_such_path",
            "There is /healthz, /readyz, /metrics, /v1/operations, /v1/operations/{id}, /v1/operations/{id}/resolve, \
             /v1/outbox, /v1/outbox/{id}, /v1/outbox/{id}/requeue, /v1/outbox/{id}/drop, /v1/reload and /v1/stats.",
        )
    }

    pub(super) fn method_not_allowed() -> Self {
        let detail = "Resolving, requeueing, dropping and reloading are a POST; everything else is a GET.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "admin_method_not_allowed", detail)
    }
}

/// A store that did not answer a question.
impl From<StoreError> for AdminProblem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "the admin API could not be answered by the store");
        match error {
            StoreError::Damaged(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "admin_record_damaged",
                "What is stored cannot be what was written. The log says which record it is.",
            ),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "admin_store_unavailable",
                "The store did not answer. Ask again after a while; the log says more.",
            ),
        }
    }
}

impl IntoResponse for AdminProblem {
    fn into_response(self) -> Response {
        let mut document = Map::new();
        document.insert("type".into(), "about:blank".into());
        document.insert("title".into(), self.status.canonical_reason().unwrap_or("Problem").into());
        document.insert("status".into(), self.status.as_u16().into());
        document.insert("detail".into(), self.detail.into());
        document.insert("code".into(), self.code.into());
        document.extend(self.more);
        let mut response = (self.status, Value::Object(document).to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = self.challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
