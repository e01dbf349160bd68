//! Problems that are not about idempotency.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;

/// As RFC 9457 has it for a problem that its status says everything about.
#[derive(Serialize)]
struct Document {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    detail: &'static str,
    retryable: bool,
}

/// A problem document without a code, for what is not about idempotency: a server that is too busy, say.
#[must_use]
pub fn plain(status: StatusCode, retryable: bool, detail: &'static str) -> Response<Bytes> {
    let title = status.canonical_reason().unwrap_or("Problem");
    let document = Document { kind: "about:blank", title, status: status.as_u16(), detail, retryable };
    // Strings, numbers and flags, written to memory: nothing here can fail.
    let mut response = Response::new(serde_json::to_vec(&document).map(Bytes::from).unwrap_or_default());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
