//! gRPC, unary: how calls are recognised, read, stored and refused.
//!
//! A call is a POST over HTTP/2 with the content type `application/grpc`; its key is the metadata `idempotency-key`. How it ended, its
//! `grpc-status` says: in the trailers after the answer, or in the head of an answer that has neither messages nor trailers
//! ("trailers-only"). That a method is unary cannot be seen on the wire: a second message of a request is refused before anything is
//! executed, a second one of an answer is passed on, and the answer not stored.
//!
//! - `framing.rs`: messages, as they lie in a body;
//! - `status.rs`: how a call ended;
//! - `streaming.rs`: answers of several messages, or too long to be stored;
//! - `refusal.rs`: refusals as gRPC clients read them.
//!
//! A service made with tonic is called with bodies of this crate. What arrives becomes one by [`Body::stream`](crate::Body::stream):
//!
//! ```
//! # use http::Request;
//! # use semel_tower::{Body, IdempotencyLayer};
//! # use tower::{Layer, ServiceBuilder, service_fn};
//! # type Incoming = http_body_util::Full<bytes::Bytes>;
//! # fn layered(idempotency: IdempotencyLayer) {
//! let layers = ServiceBuilder::new()
//!     .map_request(|call: Request<Incoming>| call.map(Body::stream))
//!     .layer(idempotency)
//!     .into_inner();
//! # let _ = layers.layer(service_fn(|_: Request<Body>| async { Ok::<_, std::io::Error>(http::Response::new(Body::empty())) }));
//! # }
//! ```

mod framing;
mod refusal;
mod status;
mod streaming;

pub(crate) use framing::{Framing, SecondMessage};
pub use refusal::refuse;
pub(crate) use refusal::refuse_call;
pub(crate) use status::status_of;
pub(crate) use streaming::{pass_on, passing};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, Version};

/// The content type of calls and of their answers.
pub(crate) const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

/// Whether a request is a gRPC call. `application/grpc-web` is plain HTTP.
#[must_use]
pub fn is_call(method: &Method, version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_2
        && method == Method::POST
        && headers.get(CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()))
}

/// `application/grpc`, or `application/grpc+proto`, with parameters or without.
fn is_grpc(content_type: &[u8]) -> bool {
    let length = GRPC.len();
    content_type.len() >= length
        && content_type[..length].eq_ignore_ascii_case(GRPC.as_bytes())
        && matches!(content_type[length..].trim_ascii_start(), [] | [b'+' | b';', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_told_by_its_content_type() {
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "Application/GRPC+json",
            "application/grpc; charset=utf-8",
        ] {
            assert!(is_grpc(kind.as_bytes()), "{kind}");
        }
        for kind in [
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/json",
            "",
            "application/grpcs",
        ] {
            assert!(!is_grpc(kind.as_bytes()), "{kind}");
        }
        let call = || http::Request::post("/shop.Payments/Create").header(CONTENT_TYPE, "application/grpc");
        let is = |builder: http::request::Builder| {
            let request = builder.body(()).unwrap();
            is_call(request.method(), request.version(), request.headers())
        };
        assert!(is(call().version(Version::HTTP_2)));
        assert!(!is(call()), "gRPC is spoken over HTTP/2");
        assert!(!is(call().version(Version::HTTP_2).method(Method::PUT)));
    }
}
