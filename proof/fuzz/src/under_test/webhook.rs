//! The signature of webhooks.

#[path = "../../../../crates/semel-relay/src/webhook/signature.rs"]
mod signature;

pub(crate) use signature::WebhookSecret;

use http::HeaderMap;
use signature::Signed;

/// The id and the time of a message that one of the secrets vouches for.
pub(crate) fn verified(headers: &HeaderMap, body: &[u8], secrets: &[WebhookSecret]) -> Option<(String, i64)> {
    Signed::verified(headers, body, secrets).map(|signed| (signed.id.to_owned(), signed.seconds))
}
