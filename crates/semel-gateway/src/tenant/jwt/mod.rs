//! Tenants as a verified token names them: `Authorization: Bearer`, a JSON Web Token.
//!
//! - `token.rs`: what a token must be to be believed;
//! - `key.rs`, `spki.rs`: one key, and the one algorithm that it is for;
//! - `key_set.rs`: several keys; `key_file.rs`: in a file that may change; `key_url.rs`: at a URL.

mod key;
mod key_file;
mod key_set;
mod key_url;
mod spki;
mod token;

pub use key::KeyError;
pub use key_file::{KeyFile, KeyFileError};
pub use key_set::{KeySet, KeySetError};
pub use key_url::KeyUrl;

use super::name_of;
use http::header::AUTHORIZATION;
use http::request::Parts;
use semel::Engine;
use semel_tower::{TenantClaim, TenantFuture, TenantSource};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use token::{Refused, verify};

/// What tokens are checked with.
#[derive(Clone)]
pub struct JwtConfig {
    /// The keys that verify signatures.
    pub keys: JwtKeys,
    /// A token must be meant for one of these. `None`: any audience.
    pub audience: Option<Vec<String>>,
    /// A token must come from one of these. `None`: any issuer that has the key.
    pub issuer: Option<Vec<String>>,
    /// How far the clocks of issuer and gateway may be apart. Default 30 s.
    pub leeway: Duration,
}

/// Where the keys are.
#[derive(Clone)]
#[non_exhaustive]
pub enum JwtKeys {
    /// One key, which stays as it is.
    Fixed(Arc<KeySet>),
    /// A JWK set in a file, which is read again when it changes.
    File(Arc<KeyFile>),
    /// A JWK set at a URL, which is fetched again when it is old or a token names another key.
    Url(Arc<KeyUrl>),
}

impl JwtConfig {
    /// How far clocks may be apart, unless told otherwise.
    pub const LEEWAY: Duration = Duration::from_secs(30);
}

impl fmt::Display for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(keys) => write!(f, "{keys}"),
            Self::File(file) => write!(f, "{} in {}", file.keys(), file.path().display()),
            Self::Url(url) => write!(f, "the keys at {}", url.endpoint()),
        }
    }
}

impl fmt::Debug for JwtConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtConfig")
            .field("keys", &self.keys.to_string())
            .field("audience", &self.audience)
            .field("issuer", &self.issuer)
            .field("leeway", &self.leeway)
            .finish()
    }
}

/// The tenant that a claim of a verified token names.
pub(super) struct VerifiedToken {
    pub(super) claim: String,
    pub(super) config: JwtConfig,
}

impl TenantSource for VerifiedToken {
    fn claim<'a>(&'a self, _: &'a Engine, parts: &'a Parts) -> TenantFuture<'a> {
        Box::pin(async move {
            let token = match bearer(parts) {
                Ok(Some(token)) => token,
                Ok(None) => return Ok(TenantClaim::Absent),
                Err(refused) => return Ok(refuse(&refused)),
            };
            Ok(match self.tenant(token).await {
                Ok(tenant) => TenantClaim::Tenant(tenant),
                Err(Refused::NoKeys) => TenantClaim::Undecided,
                Err(refused) => refuse(&refused),
            })
        })
    }
}

impl VerifiedToken {
    async fn tenant(&self, token: &str) -> Result<String, Refused> {
        let now = SystemTime::now();
        let verified = match &self.config.keys {
            JwtKeys::Fixed(keys) => verify(token, keys, &self.config, now),
            JwtKeys::File(file) => match verify(token, &*file.current().await, &self.config, now) {
                // Signed by a key that came after the file was last looked at, perhaps.
                Err(Refused::UnknownKey) => verify(token, &*file.look().await, &self.config, now),
                verified => verified,
            },
            JwtKeys::Url(url) => {
                let keys = url.current().await.ok_or(Refused::NoKeys)?;
                match verify(token, &keys, &self.config, now) {
                    // Signed by a key that came after the last fetch, perhaps.
                    Err(Refused::UnknownKey) => {
                        let keys = url.refresh().await.ok_or(Refused::NoKeys)?;
                        verify(token, &keys, &self.config, now)
                    }
                    verified => verified,
                }
            }
        };
        let claims = verified?;
        match claims.get(&self.claim) {
            Some(Value::String(name)) => name_of(name.as_bytes()).ok_or(Refused::NoTenant),
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(number.to_string()),
            _ => Err(Refused::NoTenant),
        }
    }
}

/// The token of a request; none if it has no bearer token at all.
fn bearer(parts: &Parts) -> Result<Option<&str>, Refused> {
    let mut values = parts.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    // Two may be the client's and a proxy's: which one is true cannot be told.
    if values.next().is_some() {
        return Err(Refused::Malformed);
    }
    let value = value.to_str().map_err(|_| Refused::Malformed)?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    Ok(scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()))
}

/// Why is for the operators, and never contains any of the token: an attacker learns nothing.
fn refuse(refused: &Refused) -> TenantClaim {
    tracing::debug!(%refused, "bearer token refused");
    TenantClaim::Invalid
}
