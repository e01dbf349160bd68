//! Headers that never count, even if a recipe names them.

use crate::headers::{
    IDEMPOTENCY_KEY, OWN_PREFIX, TRACEPARENT, TRACESTATE, X_API_KEY, X_REQUEST_ID, is_hop_by_hop,
};
use http::HeaderName;

/// Headers that, besides hop-by-hop ones, are never part of a fingerprint, by whole name or, with a dash at its end, by how the name begins.
const NEVER: &[(&str, &str)] = &[
    ("authorization", CREDENTIAL),
    ("proxy-authorization", CREDENTIAL),
    ("authentication-info", CREDENTIAL),
    ("cookie", CREDENTIAL),
    ("set-cookie", CREDENTIAL),
    ("api-key", CREDENTIAL),
    ("x-auth-token", CREDENTIAL),
    ("x-access-token", CREDENTIAL),
    ("x-csrf-token", CREDENTIAL),
    ("x-xsrf-token", CREDENTIAL),
    ("x-amz-security-token", CREDENTIAL),
    ("dpop", CREDENTIAL),
    ("signature", CREDENTIAL),
    ("signature-input", CREDENTIAL),
    ("client-cert", CREDENTIAL),
    ("client-cert-chain", CREDENTIAL),
    ("x-forwarded-client-cert", CREDENTIAL),
    ("accept", PREFERENCE),
    ("accept-", PREFERENCE),
    ("prefer", PREFERENCE),
    (OWN_PREFIX, "it is set by the gateway, not by the client"),
    ("content-length", ATTEMPT),
    ("date", ATTEMPT),
    ("expect", ATTEMPT),
];
/// The same, for headers that Semel itself reads.
const NEVER_OF_OURS: [(HeaderName, &str); 5] = [
    (IDEMPOTENCY_KEY, "it is the key that the fingerprint is compared under"),
    (X_API_KEY, CREDENTIAL),
    (TRACEPARENT, ATTEMPT),
    (TRACESTATE, ATTEMPT),
    (X_REQUEST_ID, ATTEMPT),
];
const CREDENTIAL: &str = "it is a credential, which may be renewed between two attempts";
const PREFERENCE: &str = "it says how the answer should look, not what is asked for";
const ATTEMPT: &str = "it belongs to one attempt, so that no retry would match";

/// Why a header can never be part of a fingerprint, if it cannot.
pub(super) fn never_counts(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    if is_hop_by_hop(&name) {
        return Some(ATTEMPT);
    }
    if let Some((_, reason)) = NEVER_OF_OURS.iter().find(|(never, _)| name == never.as_str()) {
        return Some(reason);
    }
    NEVER
        .iter()
        .find(|(never, _)| name == *never || (never.ends_with('-') && name.starts_with(never)))
        .map(|(_, reason)| *reason)
}
