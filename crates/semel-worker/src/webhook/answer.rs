//! The answer to the sender of a webhook.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use semel::OperationId;
use std::time::Duration;

/// What became of a webhook.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum WebhookResult {
    /// It settled an unknown outcome, now or when it was delivered before.
    Settled,
    /// It says what is known already.
    Known,
    /// It settles nothing, and is kept in the operation's history.
    Kept,
    /// It names no operation or no outcome, or a key that nothing is known of: it is about something else of the sender's.
    Ignored,
    /// The operation is in progress, or its lease still runs: the event is wanted again later.
    TooEarly,
    /// There is no such operation here.
    NoSuchOperation,
    /// It is not of the form that is asked for.
    Malformed,
    /// No secret of the source vouches for it.
    BadSignature,
    /// It was sent too long ago, or in the future.
    OutOfTime,
    /// There is no such source.
    UnknownSource,
    /// Its body is too long.
    TooLarge,
    /// The store did not answer, or what has to be written first could not be: the event is wanted again later.
    StoreError,
}

impl WebhookResult {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Settled,
        Self::Known,
        Self::Kept,
        Self::Ignored,
        Self::TooEarly,
        Self::NoSuchOperation,
        Self::Malformed,
        Self::BadSignature,
        Self::OutOfTime,
        Self::UnknownSource,
        Self::TooLarge,
        Self::StoreError,
    ];

    /// Its name, as metrics and answers spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Known => "known",
            Self::Kept => "kept",
            Self::Ignored => "ignored",
            Self::TooEarly => "too_early",
            Self::NoSuchOperation => "no_such_operation",
            Self::Malformed => "malformed",
            Self::BadSignature => "bad_signature",
            Self::OutOfTime => "out_of_time",
            Self::UnknownSource => "unknown_source",
            Self::TooLarge => "too_large",
            Self::StoreError => "store_error",
        }
    }

    /// The status that the sender gets. What is not 2xx is delivered again.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Settled | Self::Known | Self::Kept | Self::Ignored => StatusCode::OK,
            Self::TooEarly => StatusCode::CONFLICT,
            Self::NoSuchOperation | Self::UnknownSource => StatusCode::NOT_FOUND,
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::BadSignature | Self::OutOfTime => StatusCode::UNAUTHORIZED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::StoreError => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// The answer to a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WebhookAnswer {
    /// What became of it.
    pub result: WebhookResult,
    /// The operation that it is about, once that was found.
    pub operation_id: Option<OperationId>,
    /// What was wrong, and what to do.
    pub detail: Option<String>,
    /// When to deliver it again.
    pub retry_after: Option<Duration>,
}

impl WebhookAnswer {
    pub(super) fn of(result: WebhookResult) -> Self {
        Self { result, operation_id: None, detail: None, retry_after: None }
    }

    pub(super) fn about(mut self, id: OperationId) -> Self {
        self.operation_id = Some(id);
        self
    }

    pub(super) fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(super) fn again_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// The answer over HTTP, for any web framework.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        let mut document = serde_json::Map::new();
        document.insert("result".into(), self.result.as_str().into());
        if let Some(id) = self.operation_id {
            document.insert("operation_id".into(), id.to_string().into());
        }
        if let Some(detail) = self.detail {
            document.insert("detail".into(), detail.into());
        }
        let mut response = Response::new(Bytes::from(serde_json::Value::Object(document).to_string()));
        *response.status_mut() = self.result.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(wait) = self.retry_after {
            // A part of a second is a second: whoever comes a moment too early comes in vain.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
