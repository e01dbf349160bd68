//! Several keys, told apart by their ids: RFC 7517.

use super::key::{Jwk, KeyError, VerifyingKey};
use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// The most keys of a set.
const MAX_KEYS: usize = 100;

/// The keys that tokens are verified with.
#[derive(Debug)]
pub struct KeySet {
    /// Whether a token that names a key means one of these by its id; else there is one key for all tokens.
    by_id: bool,
    keys: Vec<(Option<String>, VerifyingKey)>,
}

/// Why something is no set of keys.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetError {
    /// It is not what RFC 7517 calls a set.
    #[error("it is not a JWK set, {{\"keys\": […]}}")]
    NotASet,
    /// One of its keys cannot be read.
    #[error("{0}")]
    Key(#[from] KeyError),
    /// It would not be clear which key is meant.
    #[error("two of its keys have the same `kid`")]
    SameId,
    /// There is nothing in it to verify with.
    #[error("none of its keys is for verifying HS256, RS256 or ES256")]
    Nothing,
    /// There are too many.
    #[error("it has more than {MAX_KEYS} keys")]
    TooMany,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

impl KeySet {
    /// One secret for all tokens: HS256.
    ///
    /// # Errors
    /// It is too short.
    pub fn of_secret(secret: &[u8]) -> Result<Self, KeyError> {
        Ok(Self::one(VerifyingKey::secret(secret)?))
    }

    /// One public key for all tokens, in PEM: RS256 if it is of RSA, ES256 if it is a point of P-256.
    ///
    /// # Errors
    /// There is no such key in the text.
    pub fn of_pem(text: &[u8]) -> Result<Self, KeyError> {
        Ok(Self::one(VerifyingKey::pem(text)?))
    }

    /// The keys of a JWK set. Those of other kinds, and for other purposes, are passed over.
    ///
    /// # Errors
    /// The text is no such set, or there is no key in it to verify with.
    pub fn of_jwks(text: &[u8]) -> Result<Self, KeySetError> {
        let document: Document = serde_json::from_slice(text).map_err(|_| KeySetError::NotASet)?;
        if document.keys.len() > MAX_KEYS {
            return Err(KeySetError::TooMany);
        }
        let mut keys: Vec<(Option<String>, VerifyingKey)> = Vec::new();
        for key in document.keys {
            let jwk = Jwk::deserialize(key).map_err(|_| KeySetError::NotASet)?;
            let Some(key) = VerifyingKey::jwk(&jwk)? else { continue };
            if jwk.id.is_some() && keys.iter().any(|(id, _)| *id == jwk.id) {
                return Err(KeySetError::SameId);
            }
            keys.push((jwk.id, key));
        }
        if keys.is_empty() {
            return Err(KeySetError::Nothing);
        }
        Ok(Self { by_id: true, keys })
    }

    fn one(key: VerifyingKey) -> Self {
        Self { by_id: false, keys: vec![(None, key)] }
    }

    /// The key that a token means by its `kid`; without one, the only key of its algorithm.
    pub(super) fn choose(&self, id: Option<&str>, algorithm: &str) -> Option<&VerifyingKey> {
        match id {
            _ if !self.by_id => self.keys.first().map(|(_, key)| key),
            Some(id) => self.keys.iter().find(|(own, _)| own.as_deref() == Some(id)).map(|(_, key)| key),
            None => {
                let mut fitting = self.keys.iter().filter(|(_, key)| key.algorithm() == algorithm);
                let only = fitting.next();
                only.filter(|_| fitting.next().is_none()).map(|(_, key)| key)
            }
        }
    }
}

/// `an ES256 key`, `3 keys (ES256, RS256)`
impl fmt::Display for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut algorithms: Vec<_> = self.keys.iter().map(|(_, key)| key.algorithm()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        let plural = if self.keys.len() == 1 { "" } else { "s" };
        write!(f, "{} key{plural} ({})", self.keys.len(), algorithms.join(", "))
    }
}
