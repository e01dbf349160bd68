//! Header names that Semel reads and writes, and which fields are hop-by-hop: every crate takes them from here.

use http::HeaderName;

/// What the names of trailers begin with, among the kept header fields of an answer. A colon is part of no name: a program that knows of no
/// trailers does not answer without them, but takes the record for damaged.
pub const TRAILER_PREFIX: &str = "trailer:";

/// How a gRPC call ended.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The same in words.
pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The same as a `google.rpc.Status`.
pub const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// How the messages of a gRPC call are compressed.
pub const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// How the messages of its answer may be compressed.
pub const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// The client's key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Marks an answer that is a replay.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// When the key's window is over: a structured-field Date.
pub const IDEMPOTENCY_KEY_EXPIRES: HeaderName = HeaderName::from_static("idempotency-key-expires");
/// On replays: by which id the first request is known.
pub const ORIGINAL_REQUEST_ID: HeaderName = HeaderName::from_static("original-request-id");
/// The same, as Stripe's libraries know it.
pub const ORIGINAL_REQUEST: HeaderName = HeaderName::from_static("original-request");
/// By which id a request is known.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// The same, as most services spell it.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The operation's id, to the service and to the client.
pub const OPERATION_ID: HeaderName = HeaderName::from_static("semel-operation-id");
/// The attempt, to the service.
pub const ATTEMPT: HeaderName = HeaderName::from_static("semel-attempt");
/// What became of the operation, as the service says.
pub const OUTCOME: HeaderName = HeaderName::from_static("semel-outcome");
/// What the service made, as `payment/pay_1`.
pub const RESOURCE: HeaderName = HeaderName::from_static("semel-resource");
/// The schema of the service's answer.
pub const SCHEMA_VERSION: HeaderName = HeaderName::from_static("semel-schema-version");

/// The addresses that a request was forwarded for.
pub const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The scheme that the client used.
pub const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The host that the client asked for.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The method of the original request, in a request to forward-auth.
pub const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
/// The target of the original request, in a request to forward-auth.
pub const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
/// A credential of the caller, beside `Authorization`.
pub const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The trace that a request belongs to: W3C Trace Context.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// What tracing systems add to [`TRACEPARENT`].
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// How the names of Semel's own fields begin.
pub const OWN_PREFIX: &str = "semel-";

/// Whether a field of this name, in lower case, is Semel's own.
#[must_use]
pub fn is_own(name: &str) -> bool {
    name.starts_with(OWN_PREFIX)
}

/// Whether a field of this name, in lower case, is about one connection alone: RFC 9110, section 7.6.1.
#[must_use]
pub fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "proxy-connection" | "te" | "trailer" | "transfer-encoding" | "upgrade"
    )
}
