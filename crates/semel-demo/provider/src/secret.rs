//! The secret that messages are signed with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Deserialize;
use sha2::Sha256;
use std::fmt;

/// The secret that webhooks are signed with: `whsec_` and 24 to 64 bytes in base64.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Secret(Vec<u8>);

/// Why a webhook or its secret is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidWebhook(pub(crate) String);

impl Secret {
    /// Reads a secret.
    ///
    /// # Errors
    /// It is not of this form. The error does not show it.
    pub fn parse(text: &str) -> Result<Self, InvalidWebhook> {
        let bytes = text.strip_prefix("whsec_").and_then(|encoded| STANDARD.decode(encoded).ok());
        match bytes {
            Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(Self(bytes)),
            _ => Err(InvalidWebhook(
                "a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with \
                 echo \"whsec_$(head -c 32 /dev/urandom | base64)\""
                    .to_owned(),
            )),
        }
    }

    /// The value of `webhook-signature`.
    pub(crate) fn sign(&self, id: &str, timestamp: u64, body: &str) -> Result<String, InvalidWebhook> {
        let mut hmac = Hmac::<Sha256>::new_from_slice(&self.0)
            .map_err(|_| InvalidWebhook("the secret has no length that can sign".to_owned()))?;
        hmac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        Ok(format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes())))
    }
}

impl TryFrom<String> for Secret {
    type Error = InvalidWebhook;

    fn try_from(text: String) -> Result<Self, InvalidWebhook> {
        Self::parse(&text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked out by other implementations of Standard Webhooks as well.
    #[test]
    fn a_known_message_has_its_known_signature() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signature.unwrap(), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_secret_is_refused_and_not_shown() {
        for text in ["", "whsec_", "whsec_c2hvcnQ=", "whsec_!!!", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            let error = Secret::parse(text).unwrap_err().to_string();
            assert!(text.len() < 10 || !error.contains(text));
        }
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
