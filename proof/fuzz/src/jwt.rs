//! Tokens of callers (JSON Web Tokens).
//!
//! The letters of the input's first line say which keys are configured (`s`ecret, `r`sa, `e`lliptic curve, else a set of all), whether
//! `a`udience and `i`ssuer are checked, and who signs: `S` and `T` the two secrets, `E` the curve's private key, `P` and `Q` a secret
//! made of a public key, `0` nobody. The second line is the token's header, the third its claims. With `X` the second line is the
//! token itself, and with `k` the rest is no token but a set of keys.

use crate::independent::base64::url;
use crate::independent::json::Json;
use crate::under_test::jwt::{JwtConfig, KeySet, verify};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use sha2::Sha256;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

const FIRST_SECRET: &[u8] = b"the secret of the token issuer, 1";
const SECOND_SECRET: &[u8] = b"the secret of the token issuer, 2";
const RSA: &str = include_str!("../../../crates/semel-gateway/tests/scope/keys/rsa-public.pem");
const CURVE: &str = include_str!("../../../crates/semel-gateway/tests/scope/keys/p256-public.pem");
const CURVE_PRIVATE: &str = include_str!("../../../crates/semel-gateway/tests/scope/keys/p256-private.pem");
/// Both secrets (`s1`, `s2`), the RSA key (`r1`) and the curve's (`e1`).
const ALL: &str = include_str!("jwt/keys.json");
/// All that was ever signed by the RSA key: nobody can make more here.
const SIGNED_BY_RSA: &str = include_str!("jwt/rs256.txt");

const NOW: u64 = 1_800_000_000;
const LEEWAY: u64 = 30;
const AUDIENCE: &str = "shop";
const ISSUER: &str = "https://issuer.example";

struct Keys {
    secret: KeySet,
    rsa: KeySet,
    curve: KeySet,
    all: KeySet,
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

static KEYS: LazyLock<Option<Keys>> = LazyLock::new(|| {
    let random = SystemRandom::new();
    let private = PrivatePkcs8KeyDer::from_pem_slice(CURVE_PRIVATE.as_bytes()).ok()?;
    Some(Keys {
        secret: KeySet::of_secret(FIRST_SECRET).ok()?,
        rsa: KeySet::of_pem(RSA.as_bytes()).ok()?,
        curve: KeySet::of_pem(CURVE.as_bytes()).ok()?,
        all: KeySet::of_jwks(ALL.as_bytes()).ok()?,
        pair: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, private.secret_pkcs8_der(), &random)
            .ok()?,
        random,
    })
});

/// Whoever can vouch for a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    FirstSecret,
    SecondSecret,
    Rsa,
    Curve,
}

impl Key {
    const ALL: [(&'static str, Self); 4] =
        [("s1", Self::FirstSecret), ("s2", Self::SecondSecret), ("r1", Self::Rsa), ("e1", Self::Curve)];

    fn algorithm(self) -> &'static str {
        match self {
            Self::FirstSecret | Self::SecondSecret => "HS256",
            Self::Rsa => "RS256",
            Self::Curve => "ES256",
        }
    }
}

/// A token is believed if, and only if, a second reading of RFC 7515 and 7519 believes it.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (mode, rest) = text.split_once('\n').unwrap_or((text, ""));
    if mode.contains('k') {
        return keys_of_strangers(rest.as_bytes());
    }
    let Some(keys) = KEYS.as_ref() else { unreachable!("the keys of the fuzzer are right") };
    let (token, signed_by_curve) = token(mode, rest, keys);
    let (set, configured) = match mode {
        _ if mode.contains('s') => (&keys.secret, Some(Key::FirstSecret)),
        _ if mode.contains('r') => (&keys.rsa, Some(Key::Rsa)),
        _ if mode.contains('e') => (&keys.curve, Some(Key::Curve)),
        _ => (&keys.all, None),
    };
    let named = |wanted: char, name: &str| mode.contains(wanted).then(|| vec![name.to_owned()]);
    let config = JwtConfig {
        audience: named('a', AUDIENCE),
        issuer: named('i', ISSUER),
        leeway: Duration::from_secs(LEEWAY),
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let verified = verify(&token, set, &config, now);
    let Some(believed) = believed(&token, configured, &config, signed_by_curve.as_deref()) else { return };
    assert_eq!(verified.is_ok(), believed, "{token}: {verified:?}");
}

/// The token, and what of it the curve's private key has signed.
fn token(mode: &str, rest: &str, keys: &Keys) -> (String, Option<String>) {
    let (header, claims) = rest.split_once('\n').unwrap_or((rest, ""));
    if mode.contains('X') {
        return (header.to_owned(), None);
    }
    let encode = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
    let signed = format!("{}.{}", encode(header.as_bytes()), encode(claims.as_bytes()));
    let signature = match mode {
        _ if mode.contains('S') => mac(FIRST_SECRET, &signed),
        _ if mode.contains('T') => mac(SECOND_SECRET, &signed),
        _ if mode.contains('P') => mac(RSA.as_bytes(), &signed),
        _ if mode.contains('Q') => mac(CURVE.as_bytes(), &signed),
        _ if mode.contains('E') => {
            let made = keys.pair.sign(&keys.random, signed.as_bytes());
            made.map(|made| made.as_ref().to_vec()).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let token = format!("{signed}.{}", encode(&signature));
    (token.clone(), mode.contains('E').then_some(token))
}

fn mac(secret: &[u8], signed: &str) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return Vec::new() };
    mac.update(signed.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Whether a token is to be believed; `None` where that hangs on a fraction of a second.
fn believed(
    token: &str,
    configured: Option<Key>,
    config: &JwtConfig,
    by_curve: Option<&str>,
) -> Option<bool> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { return Some(false) };
    let (Some(header), Some(claims)) = (object(header), object(claims)) else { return Some(false) };
    let signed = &token[..token.len() - signature.len() - 1];
    let (Some(algorithm), Some(signature)) = (header.last("alg").and_then(Json::text), url(signature)) else {
        return Some(false);
    };
    let id = header.last("kid");
    if token.len() > 8192 || header.last("crit").is_some() || id.is_some_and(|id| id.text().is_none()) {
        return Some(false);
    }
    let of_set = || match id.and_then(Json::text) {
        Some(id) => Key::ALL.iter().find(|(own, _)| *own == id).map(|(_, key)| *key),
        // Without an id there must be one key alone that fits.
        None => [Key::Rsa, Key::Curve].into_iter().find(|key| key.algorithm() == algorithm),
    };
    let Some(key) = configured.or_else(of_set).filter(|key| key.algorithm() == algorithm) else {
        return Some(false);
    };
    let vouched = match key {
        Key::FirstSecret => signature == mac(FIRST_SECRET, signed),
        Key::SecondSecret => signature == mac(SECOND_SECRET, signed),
        Key::Rsa => SIGNED_BY_RSA.lines().any(|known| known == token),
        Key::Curve => by_curve == Some(token),
    };
    if !vouched {
        return Some(false);
    }
    let moment = |name: &str| match claims.last(name) {
        None => Ok(None),
        Some(Json::Number(number)) => Ok(Some(number.double())),
        Some(_) => Err(()),
    };
    let (Ok(Some(expires)), Ok(begins)) = (moment("exp"), moment("nbf")) else { return Some(false) };
    let (earliest, latest) = ((NOW - LEEWAY) as f64, (NOW + LEEWAY) as f64);
    let close = |moment: f64, limit: f64| moment != limit && (moment - limit).abs() < 1e-3;
    if close(expires, earliest) || begins.is_some_and(|begins| close(begins, latest)) {
        return None;
    }
    let in_time = expires > earliest && begins.is_none_or(|begins| begins <= latest);
    let meant = match (&config.audience, claims.last("aud")) {
        (None, _) => true,
        (Some(_), Some(Json::Array(names))) => names.iter().any(|name| name.text() == Some(AUDIENCE)),
        (Some(_), name) => name.and_then(Json::text) == Some(AUDIENCE),
    };
    let known = config.issuer.is_none() || claims.last("iss").and_then(Json::text) == Some(ISSUER);
    Some(in_time && meant && known)
}

/// A part of a token as everybody reads JSON: not nested without end, and no number beyond all doubles.
fn object(part: &str) -> Option<Json> {
    let value = Json::parse(&url(part)?, 127)?;
    (matches!(value, Json::Object(_)) && is_finite(&value)).then_some(value)
}

fn is_finite(value: &Json) -> bool {
    match value {
        Json::Number(number) => number.double().is_finite(),
        Json::Array(items) => items.iter().all(is_finite),
        Json::Object(members) => members.iter().all(|(_, value)| is_finite(value)),
        _ => true,
    }
}

/// Keys are read or refused, and what was read can be used.
fn keys_of_strangers(text: &[u8]) {
    let config = JwtConfig { audience: None, issuer: None, leeway: Duration::ZERO };
    let of_set = KeySet::of_jwks(text).ok();
    let of_pem = KeySet::of_pem(text).ok();
    for keys in [of_set, of_pem].into_iter().flatten() {
        assert!(!keys.to_string().is_empty());
        for token in SIGNED_BY_RSA.lines() {
            // Whether it is believed hangs on the key; an expired one never is.
            let late = SystemTime::UNIX_EPOCH + Duration::from_secs(5_000_000_000);
            assert!(verify(token, &keys, &config, late).is_err());
        }
    }
}
