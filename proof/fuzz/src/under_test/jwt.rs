//! Tokens.

#[path = "../../../../crates/semel-gateway/src/tenant/jwt/key.rs"]
mod key;
#[path = "../../../../crates/semel-gateway/src/tenant/jwt/key_set.rs"]
mod key_set;
#[path = "../../../../crates/semel-gateway/src/tenant/jwt/spki.rs"]
mod spki;
#[path = "../../../../crates/semel-gateway/src/tenant/jwt/token.rs"]
mod token;

pub(crate) use key_set::KeySet;

use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};

/// What tokens are checked with, but for the keys.
pub(crate) struct JwtConfig {
    pub(crate) audience: Option<Vec<String>>,
    pub(crate) issuer: Option<Vec<String>>,
    pub(crate) leeway: Duration,
}

/// The claims of a token that is believed; else why it is not.
pub(crate) fn verify(
    token: &str,
    keys: &KeySet,
    config: &JwtConfig,
    now: SystemTime,
) -> Result<Map<String, Value>, String> {
    token::verify(token, keys, config, now).map_err(|refused| format!("{refused:?}"))
}
