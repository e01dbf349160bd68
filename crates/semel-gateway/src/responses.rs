//! What the gateway itself answers where it is not about idempotency: problem documents without a code.

use bytes::Bytes;
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use semel::problem::plain;

fn closing(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// A request that no service is asked about.
pub(crate) fn bad_request(detail: &'static str) -> Response<Bytes> {
    closing(plain(StatusCode::BAD_REQUEST, false, detail))
}

pub(crate) fn no_tunnels() -> Response<Bytes> {
    closing(plain(StatusCode::NOT_IMPLEMENTED, false, "CONNECT is not supported."))
}

/// A gRPC call that the service cannot be sent.
pub(crate) fn no_grpc() -> Response<Bytes> {
    plain(
        StatusCode::NOT_IMPLEMENTED,
        false,
        "The service behind this gateway does not speak HTTP/2, and gRPC needs it. Nothing was executed.",
    )
}

pub(crate) fn too_slow() -> Response<Bytes> {
    closing(plain(
        StatusCode::REQUEST_TIMEOUT,
        true,
        "The request body did not arrive in time, and the request was abandoned. Send it again.",
    ))
}

pub(crate) fn too_long() -> Response<Bytes> {
    closing(plain(
        StatusCode::PAYLOAD_TOO_LARGE,
        false,
        "The request body is larger than this server passes on.",
    ))
}

pub(crate) fn too_busy() -> Response<Bytes> {
    let mut response = plain(
        StatusCode::SERVICE_UNAVAILABLE,
        true,
        "Too many requests are in flight, and this one was not executed. Send it again later.",
    );
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// For a client that holds its share of the capacity while others want some.
pub(crate) fn over_share() -> Response<Bytes> {
    let mut response = plain(
        StatusCode::TOO_MANY_REQUESTS,
        true,
        "Too many of your requests are in flight while others wait, and this one was not executed. Send it again later.",
    );
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The same, in the middle of the request's body.
pub(crate) fn made_room() -> Response<Bytes> {
    closing(over_share())
}

pub(crate) fn bad_gateway() -> Response<Bytes> {
    plain(StatusCode::BAD_GATEWAY, false, "The service received the request and sent an invalid answer.")
}

pub(crate) fn gateway_timeout() -> Response<Bytes> {
    plain(StatusCode::GATEWAY_TIMEOUT, false, "The service received the request and did not answer in time.")
}
