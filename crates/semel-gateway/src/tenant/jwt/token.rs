//! What a token must be to be believed.

use super::JwtConfig;
use super::key_set::KeySet;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value};
use std::time::{Duration, SystemTime};

/// The longest token that is looked at: more than any that names a caller needs.
const MAX_TOKEN: usize = 8 * 1024;

/// What a token says.
pub(super) type Claims = Map<String, Value>;

/// Why a token is not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Refused {
    #[error("it is longer than {MAX_TOKEN} bytes")]
    TooLong,
    #[error("it is not a signed JWT")]
    Malformed,
    #[error("it needs extensions that are not supported (`crit`)")]
    Critical,
    #[error("the issuer's keys could not be fetched yet")]
    NoKeys,
    #[error("it is signed by an unknown key")]
    UnknownKey,
    #[error("its algorithm does not match its key")]
    Algorithm,
    #[error("its signature is invalid")]
    Signature,
    #[error("it has no expiry (`exp`)")]
    NoExpiry,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYet,
    #[error("it is for another audience (`aud`)")]
    Audience,
    #[error("it is from another issuer (`iss`)")]
    Issuer,
    #[error("the claim that names the tenant is missing or empty")]
    NoTenant,
}

/// The claims of a token that is right in every way. Nothing of it is believed before its signature is.
pub(super) fn verify(
    token: &str,
    keys: &KeySet,
    config: &JwtConfig,
    now: SystemTime,
) -> Result<Claims, Refused> {
    if token.len() > MAX_TOKEN {
        return Err(Refused::TooLong);
    }
    let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Malformed)?;
    let (header, claims) = signed.split_once('.').ok_or(Refused::Malformed)?;
    let header = object(header)?;
    // Whatever it demands, it is not done here. `jku`, `jwk` and `x5u` are not looked at: a token does not choose its own keys.
    if header.contains_key("crit") {
        return Err(Refused::Critical);
    }
    let algorithm = text(&header, "alg")?.ok_or(Refused::Malformed)?;
    let key = keys.choose(text(&header, "kid")?, algorithm).ok_or(Refused::UnknownKey)?;
    // The key says what it is for. A token that names anything else is not verified at all.
    if key.algorithm() != algorithm {
        return Err(Refused::Algorithm);
    }
    let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refused::Malformed)?;
    if !key.verifies(signed.as_bytes(), &signature) {
        return Err(Refused::Signature);
    }
    let claims = object(claims)?;
    check_times(&claims, config.leeway, now)?;
    check_names(&claims, config)?;
    Ok(claims)
}

fn object(part: &str) -> Result<Map<String, Value>, Refused> {
    let json = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Malformed)?;
    serde_json::from_slice(&json).map_err(|_| Refused::Malformed)
}

fn text<'a>(header: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refused> {
    header.get(name).map(|value| value.as_str().ok_or(Refused::Malformed)).transpose()
}

fn check_times(claims: &Claims, leeway: Duration, now: SystemTime) -> Result<(), Refused> {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let leeway = leeway.as_secs_f64();
    let moment = |name| claims.get(name).map(|value| value.as_f64().ok_or(Refused::Malformed)).transpose();
    if moment("exp")?.ok_or(Refused::NoExpiry)? <= now - leeway {
        return Err(Refused::Expired);
    }
    match moment("nbf")? {
        Some(not_before) if not_before > now + leeway => Err(Refused::NotYet),
        _ => Ok(()),
    }
}

fn check_names(claims: &Claims, config: &JwtConfig) -> Result<(), Refused> {
    let among =
        |names: &[String], value: &Value| value.as_str().is_some_and(|name| names.iter().any(|n| n == name));
    if let Some(audience) = &config.audience {
        let meant = match claims.get("aud") {
            Some(Value::Array(meant)) => meant.iter().any(|one| among(audience, one)),
            Some(one) => among(audience, one),
            None => false,
        };
        if !meant {
            return Err(Refused::Audience);
        }
    }
    match &config.issuer {
        Some(issuer) if !claims.get("iss").is_some_and(|one| among(issuer, one)) => Err(Refused::Issuer),
        _ => Ok(()),
    }
}
