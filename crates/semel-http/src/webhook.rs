//! Signatures of webhooks, as Standard Webhooks defines them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName};
use sha2::Sha256;
use std::fmt;

/// The header with the message's id: the same for every delivery of one message.
pub const ID: HeaderName = HeaderName::from_static("webhook-id");
/// The header that says when a delivery was sent, in seconds since 1970.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// The header with the signatures, separated by spaces.
pub const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// A secret that webhooks are signed with: `whsec_` and 24 to 64 bytes in base64.
#[derive(Clone)]
pub struct WebhookSecret(Vec<u8>);

/// The text is not a valid webhook secret. It is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo \"whsec_$(head -c 32 /dev/urandom | base64)\""
)]
pub struct InvalidSecret;

impl WebhookSecret {
    /// Reads a secret.
    ///
    /// # Errors
    /// It is not of this form.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let bytes = text.trim().strip_prefix("whsec_").and_then(|encoded| STANDARD.decode(encoded).ok());
        bytes.filter(|bytes| (24..=64).contains(&bytes.len())).map(Self).ok_or(InvalidSecret)
    }

    /// Whether the message was signed with it. Takes as long for a wrong signature as for a right one.
    fn signed(&self, message: &SignedMessage<'_>, body: &[u8], signature: &[u8]) -> bool {
        let hmac = self.hmac(message.id, message.timestamp, body);
        hmac.is_some_and(|hmac| hmac.verify_slice(signature).is_ok())
    }

    /// The signature of a message, as its header has it.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp: &str, body: &[u8]) -> Option<String> {
        let hmac = self.hmac(id, timestamp, body)?;
        Some(format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes())))
    }

    /// `None` is never seen: HMAC takes keys of any length.
    fn hmac(&self, id: &str, timestamp: &str, body: &[u8]) -> Option<Hmac<Sha256>> {
        let mut hmac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            hmac.update(part);
        }
        Some(hmac)
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

/// What a message says of itself, and its signature covers.
#[derive(Debug)]
pub struct SignedMessage<'a> {
    /// The same for every delivery of one message.
    pub id: &'a str,
    timestamp: &'a str,
    /// When it was sent, in seconds since 1970.
    pub seconds: i64,
}

/// The longest id that is accepted: it goes into histories.
const LONGEST_ID: usize = 255;

/// Signatures of one message at most: one per secret in rotation.
const MOST_SIGNATURES: usize = 16;

impl<'a> SignedMessage<'a> {
    /// What the headers say, if one of the secrets vouches for it.
    #[must_use]
    pub fn verified(headers: &'a HeaderMap, body: &[u8], secrets: &[WebhookSecret]) -> Option<Self> {
        let id = only(headers, &ID)?;
        let timestamp = only(headers, &TIMESTAMP)?;
        let fits = !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic());
        let digits = !timestamp.is_empty() && timestamp.bytes().all(|byte| byte.is_ascii_digit());
        if !fits || !digits {
            return None;
        }
        let message = Self { id, timestamp, seconds: timestamp.parse().ok()? };
        let genuine = only(headers, &SIGNATURE)?
            .split(' ')
            .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
            .take(MOST_SIGNATURES)
            .any(|signature| secrets.iter().any(|secret| secret.signed(&message, body, &signature)));
        genuine.then_some(message)
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn genuine(id: &str, timestamp: &str, signature: &str, body: &[u8], secrets: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", signature)]
        {
            headers.insert(name, value.parse().unwrap());
        }
        let secrets: Vec<_> = secrets.iter().map(|text| WebhookSecret::parse(text).unwrap()).collect();
        SignedMessage::verified(&headers, body, &secrets).is_some_and(|signed| signed.id == id)
    }

    /// Worked out by other implementations of Standard Webhooks as well.
    #[test]
    fn a_known_message_is_genuine_and_nothing_of_it_can_be_changed() {
        let other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
        let (id, at) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330");
        assert!(genuine(id, at, SIGNATURE, BODY, &[SECRET]));
        assert!(genuine(id, at, SIGNATURE, BODY, &[other, SECRET]), "the old secret in rotation");
        assert!(
            genuine(id, at, &format!("v1,AAAA v1a,x {SIGNATURE}"), BODY, &[SECRET]),
            "several signatures"
        );
        assert!(!genuine(id, at, SIGNATURE, BODY, &[other]));
        assert!(!genuine(id, at, SIGNATURE, BODY, &[]));
        assert!(!genuine("msg_other", at, SIGNATURE, BODY, &[SECRET]));
        assert!(!genuine(id, "1614265331", SIGNATURE, BODY, &[SECRET]));
        assert!(!genuine(id, at, SIGNATURE, br#"{"test": 2432232315}"#, &[SECRET]));
        for signature in
            ["", "v1,", "v1,AAAA", "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", &SIGNATURE[3..]]
        {
            assert!(!genuine(id, at, signature, BODY, &[SECRET]), "{signature}");
        }
    }

    #[test]
    fn what_we_sign_is_what_others_sign() {
        let secret = WebhookSecret::parse(SECRET).unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", BODY);
        assert_eq!(signature.as_deref(), Some(SIGNATURE));
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert_eq!(WebhookSecret::parse(text).err(), Some(InvalidSecret));
        }
        assert_eq!(format!("{:?}", WebhookSecret::parse(SECRET).unwrap()), "WebhookSecret(..)");
    }
}
