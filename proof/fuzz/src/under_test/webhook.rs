//! The signature of webhooks.

#[path = "../../../../crates/semel-http/src/webhook.rs"]
mod signature;

pub(crate) use signature::WebhookSecret;

use http::HeaderMap;
use signature::SignedMessage;

/// The id and the time of a message that one of the secrets vouches for.
pub(crate) fn verified(headers: &HeaderMap, body: &[u8], secrets: &[WebhookSecret]) -> Option<(String, i64)> {
    SignedMessage::verified(headers, body, secrets).map(|signed| (signed.id.to_owned(), signed.seconds))
}
