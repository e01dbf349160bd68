//! Whom requests are signed for: the usual chain of places.

mod chain;
mod container;
mod environment;
mod instance;
mod profile;
mod web_identity;

pub(crate) use chain::Chain;

use serde_json::Value;
use std::fmt;

/// An access key with its secret, and a session token where they are temporary.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The access key's id, which is no secret.
    pub access_key_id: String,
    pub(crate) secret_access_key: String,
    pub(crate) session_token: Option<String>,
    /// When they end, in milliseconds since 1970.
    pub(crate) expires: Option<i64>,
}

impl Credentials {
    /// Credentials that last.
    pub fn new(
        access_key_id: impl Into<String>,
        secret_access_key: impl Into<String>,
        session_token: Option<String>,
    ) -> Self {
        let (access_key_id, secret_access_key) = (access_key_id.into(), secret_access_key.into());
        Self { access_key_id, secret_access_key, session_token, expires: None }
    }

    /// From the document that containers and instances are given.
    fn of_document(document: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(document).ok()?;
        let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Self {
            access_key_id: text("AccessKeyId")?,
            secret_access_key: text("SecretAccessKey")?,
            session_token: text("Token"),
            expires: moment(&text("Expiration")?),
        })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("access_key_id", &self.access_key_id).finish_non_exhaustive()
    }
}

/// A moment as AWS writes it, in milliseconds.
fn moment(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// Why there are no credentials. Nothing secret is in it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialsError(pub(crate) String);
