//! Which header fields pass, which are kept for retries, and which are Semel's own.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, ETAG, HeaderMap, HeaderName,
    HeaderValue, LINK, LOCATION, RETRY_AFTER, VARY,
};
use semel::headers::{GRPC_ENCODING, GRPC_MESSAGE, GRPC_STATUS, GRPC_STATUS_DETAILS};
use semel::headers::{IDEMPOTENCY_KEY_EXPIRES, ORIGINAL_REQUEST_ID, is_hop_by_hop, is_own};
use semel::{OperationId, Resource};

pub use semel::headers::{ATTEMPT, OPERATION_ID, OUTCOME, RESOURCE, SCHEMA_VERSION};
pub(crate) use semel::headers::{IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, TRAILER_PREFIX};
use semel::headers::{REQUEST_ID, X_REQUEST_ID};

/// Kept for retries without being asked to.
const KEPT: [HeaderName; 6] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, LOCATION, ETAG, LINK];

/// Kept for retries of a gRPC call as well, in the head and in the trailers.
const KEPT_OF_CALLS: [HeaderName; 4] = [GRPC_STATUS, GRPC_MESSAGE, GRPC_STATUS_DETAILS, GRPC_ENCODING];

/// Never kept, whatever a policy says: cookies and credentials are one caller's, as hop-by-hop fields are one connection's. The length
/// is that of the stored body.
const NEVER_KEPT: [&str; 10] = [
    "set-cookie",
    "set-cookie2",
    "authorization",
    "proxy-authorization",
    "authentication-info",
    "proxy-authentication-info",
    "www-authenticate",
    "proxy-authenticate",
    "cookie",
    "content-length",
];

/// Which fields of an answer are kept for retries: an allow-list.
#[derive(Clone, Debug, Default)]
pub struct KeptHeaders {
    more: Vec<HeaderName>,
}

/// A header that no policy can keep.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be kept for retries: cookies, credentials and hop-by-hop fields belong to one caller or one connection"
)]
pub struct CannotKeep(pub HeaderName);

impl KeptHeaders {
    /// Keeps these fields as well.
    ///
    /// # Errors
    /// One of them must never be replayed.
    pub fn and(mut self, names: impl IntoIterator<Item = HeaderName>) -> Result<Self, CannotKeep> {
        for name in names {
            if !may_be_kept(&name) {
                return Err(CannotKeep(name));
            }
            self.more.push(name);
        }
        Ok(self)
    }

    /// The fields that the policy names.
    pub(crate) fn more(&self) -> impl Iterator<Item = &HeaderName> {
        self.more.iter()
    }

    /// Whether the policy names the field.
    pub(crate) fn names(&self, name: &HeaderName) -> bool {
        self.more.contains(name)
    }

    /// What is kept of an answer. `for_page`: the request came from a page that has an origin.
    pub(crate) fn of(&self, headers: &HeaderMap, for_page: bool) -> Vec<(String, Bytes)> {
        headers
            .iter()
            .filter(|(name, _)| {
                KEPT.contains(name) || self.more.contains(name) || (for_page && is_for_origin(name))
            })
            .map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())))
            .collect()
    }

    /// The same of the answer to a gRPC call: of its head, and of its trailers.
    pub(crate) fn of_call(
        &self,
        head: &HeaderMap,
        trailers: Option<&HeaderMap>,
        for_page: bool,
    ) -> Vec<(String, Bytes)> {
        let of_calls = |fields: &HeaderMap| -> Vec<(String, Bytes)> {
            let kept = fields.iter().filter(|(name, _)| KEPT_OF_CALLS.contains(name));
            kept.map(|(name, value)| (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())))
                .collect()
        };
        let trailing =
            trailers.map(|trailers| [self.of(trailers, false), of_calls(trailers)]).into_iter().flatten();
        let trailing = trailing.flatten().map(|(name, value)| (format!("{TRAILER_PREFIX}{name}"), value));
        self.of(head, for_page).into_iter().chain(of_calls(head)).chain(trailing).collect()
    }
}

/// Whether a field says which pages may read an answer, or that it depends on them.
pub(crate) fn is_for_origin(name: &HeaderName) -> bool {
    *name == VARY || name.as_str().starts_with("access-control-")
}

/// Whether a field may ever be replayed.
pub(crate) fn may_be_kept(name: &HeaderName) -> bool {
    !NEVER_KEPT.contains(&name.as_str()) && !is_hop_by_hop(name.as_str()) && !is_ours(name)
}

fn is_ours(name: &HeaderName) -> bool {
    is_own(name.as_str())
        || [IDEMPOTENT_REPLAYED, IDEMPOTENCY_KEY_EXPIRES, ORIGINAL_REQUEST_ID].contains(name)
}

/// Drops every `Semel-*` field, and what the layer alone says of a key: what a client sends under such a name must not be taken for ours, and what a service sends us is
/// not the client's business.
pub(crate) fn drop_ours(headers: &mut HeaderMap) {
    let ours: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Tells the service which attempt it executes. Its answer has to suit every retry, whatever encodings that accepts.
pub(crate) fn tell_service(headers: &mut HeaderMap, operation_id: OperationId, attempt: u32) {
    drop_ours(headers);
    headers.insert(OPERATION_ID, operation_id_value(operation_id));
    headers.insert(ATTEMPT, HeaderValue::from(attempt));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

pub(crate) fn operation_id_value(operation_id: OperationId) -> HeaderValue {
    #[expect(clippy::expect_used, reason = "a UUID is hexadecimal digits and hyphens")]
    HeaderValue::try_from(operation_id.to_string()).expect("a UUID is a header value")
}

/// By which id a request or its answer is known.
pub(crate) fn request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(REQUEST_ID).or_else(|| headers.get(X_REQUEST_ID)).filter(|id| !id.is_empty()).cloned()
}

/// The resource that a service declared: `payment/pay_1`.
pub(crate) fn resource(headers: &HeaderMap) -> Option<Resource> {
    let (kind, id) = headers.get(RESOURCE)?.to_str().ok()?.split_once('/')?;
    (!kind.is_empty() && !id.is_empty()).then(|| Resource { kind: kind.to_owned(), id: id.to_owned() })
}

/// When a service wants to be asked again, as it spelt it: seconds or a date (RFC 9110, section 10.2.3). Nothing, where that is not what it
/// says: a client must get something that it can read, and not be asked for a busy loop.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(RETRY_AFTER).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let text = value.to_str().ok()?;
    let is_seconds = (1..=10).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte != b'0');
    // `Sun, 06 Nov 1994 08:49:37 GMT`: the one form that may be sent.
    let is_date =
        text.len() == 29 && text.is_char_boundary(3) && &text[3..5] == ", " && text.ends_with(" GMT");
    (is_seconds || is_date).then(|| value.clone())
}

/// The schema version that a service declared.
pub(crate) fn schema_version(headers: &HeaderMap) -> Option<String> {
    headers.get(SCHEMA_VERSION)?.to_str().ok().map(str::to_owned)
}
