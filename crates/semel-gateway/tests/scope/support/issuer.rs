//! Who signs tokens, rightly or not. The key pairs in `keys/` were made by OpenSSL, and are used nowhere else.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use ring::{hmac, rsa};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::SystemTime;

pub(crate) const AUDIENCE: &str = "https://shop.example";
pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const SECRET: &str = "a-secret-of-at-least-thirty-two-bytes";

/// A key that signs.
pub(crate) enum Issuer {
    Secret(Vec<u8>),
    Rsa(Box<RsaKeyPair>),
    P256(Box<EcdsaKeyPair>),
}

impl Issuer {
    pub(crate) fn rsa() -> Self {
        Self::Rsa(Box::new(RsaKeyPair::from_pkcs8(&private("rsa")).unwrap()))
    }

    pub(crate) fn p256() -> Self {
        Self::of_p256(&private("p256"))
    }

    /// A key that nobody knows.
    pub(crate) fn stranger() -> Self {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::of_p256(made.unwrap().as_ref())
    }

    pub(crate) fn secret(secret: &[u8]) -> Self {
        Self::Secret(secret.to_vec())
    }

    fn of_p256(pkcs8: &[u8]) -> Self {
        let random = SystemRandom::new();
        Self::P256(Box::new(
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &random).unwrap(),
        ))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Secret(_) => "HS256",
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
        }
    }

    /// A token that is right, of this caller.
    pub(crate) fn token(&self, subject: &str) -> String {
        self.sign(&json!({ "alg": self.algorithm(), "typ": "JWT" }), &claims(subject))
    }

    /// A token that is right but for these claims; a claim that is null is left out.
    pub(crate) fn token_with(&self, changes: Value) -> String {
        let mut claims = claims("ann");
        for (name, value) in changes.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        self.sign(&json!({ "alg": self.algorithm() }), &claims)
    }

    /// A token that names its key.
    pub(crate) fn token_by(&self, id: &str) -> String {
        self.token_under(json!({ "alg": self.algorithm(), "kid": id }))
    }

    /// A token with another header.
    pub(crate) fn token_under(&self, header: Value) -> String {
        self.sign(&header, &claims("ann"))
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |json: &Value| BASE64_URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let (bytes, random) = (message.as_bytes(), SystemRandom::new());
        let signature = match self {
            Self::Secret(secret) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), bytes).as_ref().to_vec()
            }
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature).unwrap();
                signature
            }
            Self::P256(pair) => pair.sign(&random, bytes).unwrap().as_ref().to_vec(),
        };
        format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// The key as a JWK, to verify with.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Secret(secret) => json!({ "kty": "oct", "kid": id, "k": text(secret) }),
            Self::Rsa(pair) => {
                let rsa::PublicKeyComponents { n, e } =
                    rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "kid": id, "use": "sig", "alg": "RS256", "n": text(&n), "e": text(&e) })
            }
            Self::P256(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": text(x), "y": text(y) })
            }
        }
    }
}

fn claims(subject: &str) -> Value {
    json!({ "sub": subject, "aud": AUDIENCE, "iss": ISSUER, "exp": now() + 3600 })
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

/// A file in `keys/`.
pub(crate) fn key_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scope/keys").join(name)
}

/// A public key as its file has it.
pub(crate) fn public(name: &str) -> Vec<u8> {
    std::fs::read(key_file(&format!("{name}-public.pem"))).unwrap()
}

fn private(name: &str) -> Vec<u8> {
    let pem = std::fs::read_to_string(key_file(&format!("{name}-private.pem"))).unwrap();
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    BASE64_STANDARD.decode(base64).unwrap()
}
