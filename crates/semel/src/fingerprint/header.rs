//! Headers that never count, even if a recipe names them.

use crate::headers::{OWN_PREFIX, is_hop_by_hop};

/// Headers that, besides hop-by-hop ones, are never part of a fingerprint, by whole name or, with a dash at its end, by how the name begins.
const NEVER: &[(&str, &str)] = &[
    ("authorization", CREDENTIAL),
    ("proxy-authorization", CREDENTIAL),
    ("authentication-info", CREDENTIAL),
    ("cookie", CREDENTIAL),
    ("set-cookie", CREDENTIAL),
    ("api-key", CREDENTIAL),
    ("x-api-key", CREDENTIAL),
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
    ("idempotency-key", "it is the key that the fingerprint is compared under"),
    ("accept", PREFERENCE),
    ("accept-", PREFERENCE),
    ("prefer", PREFERENCE),
    (OWN_PREFIX, "it is set by the gateway, not by the client"),
    ("content-length", ATTEMPT),
    ("date", ATTEMPT),
    ("expect", ATTEMPT),
    ("traceparent", ATTEMPT),
    ("tracestate", ATTEMPT),
    ("x-request-id", ATTEMPT),
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
    NEVER
        .iter()
        .find(|(never, _)| name == *never || (never.ends_with('-') && name.starts_with(never)))
        .map(|(_, reason)| *reason)
}
