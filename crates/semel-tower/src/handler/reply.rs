//! An answer that is stored in the handler's own transaction.

use crate::grpc;
use crate::headers::{TRAILER_PREFIX, may_be_kept};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use semel::headers::GRPC_STATUS;
use semel::{Resource, StoredResponse};
use serde::Serialize;

/// The answer that the first request and all its retries get, and what the operation made.
///
/// ```
/// use semel_tower::Reply;
/// use http::StatusCode;
///
/// let reply = Reply::json(StatusCode::CREATED, &serde_json::json!({ "id": "pay_1" }))?
///     .resource("payment", "pay_1")
///     .schema_version("v1");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Reply {
    pub(crate) stored: StoredResponse,
    pub(crate) resource: Option<Resource>,
    pub(crate) failed: bool,
}

impl Reply {
    /// An answer with these bytes.
    pub fn bytes(status: StatusCode, media_type: HeaderValue, body: impl Into<Bytes>) -> Self {
        let stored = StoredResponse {
            status: status.as_u16(),
            headers: Vec::new(),
            body: semel::Body::Stored(body.into()),
            schema_version: None,
        };
        Self { stored, resource: None, failed: false }.header(CONTENT_TYPE, media_type)
    }

    /// An answer in JSON.
    ///
    /// # Errors
    /// The body cannot be written as JSON.
    pub fn json(status: StatusCode, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self::bytes(status, HeaderValue::from_static("application/json"), serde_json::to_vec(body)?))
    }

    /// An answer to a gRPC call: this message, as it is encoded, and the status `OK`.
    pub fn grpc(message: &[u8]) -> Self {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let framed = [&[0][..], &length.to_be_bytes(), message].concat();
        Self::bytes(StatusCode::OK, grpc::GRPC, framed).trailer(GRPC_STATUS, HeaderValue::from_static("0"))
    }

    /// Adds a trailer, as gRPC has them after an answer.
    pub fn trailer(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if may_be_kept(&name) {
            let name = format!("{TRAILER_PREFIX}{name}");
            self.stored.headers.push((name, Bytes::copy_from_slice(value.as_bytes())));
        }
        self
    }

    /// Adds a header field. Cookies, credentials and hop-by-hop fields are left out: they must never be replayed.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        if may_be_kept(&name) {
            self.stored.headers.push((name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        }
        self
    }

    /// Says what the operation made.
    pub fn resource(mut self, kind: impl Into<String>, id: impl Into<String>) -> Self {
        self.resource = Some(Resource { kind: kind.into(), id: id.into() });
        self
    }

    /// Marks the operation as failed for good. Retries get this answer too; only the record shows the difference.
    pub fn failed(mut self) -> Self {
        self.failed = true;
        self
    }

    /// Says which schema the body has.
    pub fn schema_version(mut self, version: impl Into<String>) -> Self {
        self.stored.schema_version = Some(version.into());
        self
    }

    /// The stored response and the resource. For settling an operation by evidence, where no handler can finish it.
    #[must_use]
    pub fn into_parts(self) -> (StoredResponse, Option<Resource>) {
        (self.stored, self.resource)
    }
}

/// An answer that is stored: what the handler returns once its transaction has committed.
///
/// The layer answers with what was stored, whatever becomes of this on its way out.
#[derive(Clone, Debug)]
pub struct Replayable(pub(crate) StoredResponse);

impl Replayable {
    /// The stored status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// The answer as a response.
    #[must_use]
    pub fn into_http(self) -> Response<Bytes> {
        let body = match self.0.body {
            semel::Body::Stored(bytes) => bytes,
            _ => Bytes::new(),
        };
        let mut response = Response::new(body);
        if let Ok(status) = StatusCode::from_u16(self.0.status) {
            *response.status_mut() = status;
        }
        for (name, value) in self.0.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_maybe_shared(value))
            {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

#[cfg(feature = "axum")]
impl axum_core::response::IntoResponse for Replayable {
    fn into_response(self) -> axum_core::response::Response {
        self.into_http().map(axum_core::body::Body::from)
    }
}
