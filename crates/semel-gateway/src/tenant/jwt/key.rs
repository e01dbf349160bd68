//! One key, and the one algorithm that it is for: its kind decides, never a token.

use super::spki;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use rustls_pki_types::SubjectPublicKeyInfoDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use std::fmt;

/// The shortest secret of HS256, in bytes: as long as its hash, as RFC 7518 has it. A shorter one can be guessed from one token.
pub(super) const SHORTEST_SECRET: usize = 32;
/// The shortest modulus of RSA, in bytes.
const SHORTEST_MODULUS: usize = 2048 / 8;
/// A point of P-256: a byte for its form, and two coordinates.
const POINT: usize = 1 + 32 + 32;
const UNCOMPRESSED: u8 = 4;

/// A key to verify with.
pub(super) enum VerifyingKey {
    /// HS256: the key that verifies can also sign.
    Secret(hmac::Key),
    /// RS256.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    /// ES256.
    P256(Vec<u8>),
}

/// Why something is no key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is no public key in PEM.
    #[error("there is no `-----BEGIN PUBLIC KEY-----` in it")]
    NoPem,
    /// It is neither RSA nor P-256.
    #[error("its public key is neither RSA nor P-256 (ES256)")]
    Kind,
    /// An RSA key that is too short to be safe.
    #[error("its RSA key has fewer than 2048 bits")]
    ShortModulus,
    /// A secret that can be guessed.
    #[error("an HS256 secret needs at least {SHORTEST_SECRET} bytes")]
    ShortSecret,
    /// A part of a JWK is missing or cannot be read.
    #[error("`{0}` of a key is missing or not base64url")]
    Member(&'static str),
}

impl VerifyingKey {
    /// The key of HS256.
    pub(super) fn secret(secret: &[u8]) -> Result<Self, KeyError> {
        if secret.len() < SHORTEST_SECRET {
            return Err(KeyError::ShortSecret);
        }
        Ok(Self::Secret(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The public key in a PEM file.
    pub(super) fn pem(text: &[u8]) -> Result<Self, KeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| KeyError::NoPem)?;
        match spki::read(&der).ok_or(KeyError::Kind)? {
            spki::PublicKey::Rsa { modulus, exponent } => Self::rsa(modulus, exponent),
            spki::PublicKey::P256(point) => Self::point(point.to_vec()),
        }
    }

    /// The key that a JWK describes; none if it is for something else than verifying, or by another algorithm than are known here.
    pub(super) fn jwk(jwk: &Jwk) -> Result<Option<Self>, KeyError> {
        let for_verifying = jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && jwk.operations.as_ref().is_none_or(|operations| operations.iter().any(|one| one == "verify"));
        let key = match (jwk.kind.as_str(), jwk.curve.as_deref()) {
            ("RSA", _) => Self::rsa(&bytes(jwk.n.as_ref(), "n")?, &bytes(jwk.e.as_ref(), "e")?)?,
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes(jwk.x.as_ref(), "x")?, bytes(jwk.y.as_ref(), "y")?);
                Self::point([&[UNCOMPRESSED], x.as_slice(), y.as_slice()].concat())?
            }
            ("oct", _) => Self::secret(&bytes(jwk.k.as_ref(), "k")?)?,
            _ => return Ok(None),
        };
        let named = jwk.algorithm.as_deref().is_none_or(|algorithm| algorithm == key.algorithm());
        Ok((for_verifying && named).then_some(key))
    }

    fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<Self, KeyError> {
        let without_zeros =
            |number: &[u8]| number.iter().copied().skip_while(|byte| *byte == 0).collect::<Vec<_>>();
        let (modulus, exponent) = (without_zeros(modulus), without_zeros(exponent));
        if modulus.len() < SHORTEST_MODULUS {
            return Err(KeyError::ShortModulus);
        }
        Ok(Self::Rsa { modulus, exponent })
    }

    fn point(point: Vec<u8>) -> Result<Self, KeyError> {
        if point.len() != POINT || point.first() != Some(&UNCOMPRESSED) {
            return Err(KeyError::Kind);
        }
        Ok(Self::P256(point))
    }

    /// The one algorithm that this key is for.
    pub(super) fn algorithm(&self) -> &'static str {
        match self {
            Self::Secret(_) => "HS256",
            Self::Rsa { .. } => "RS256",
            Self::P256(_) => "ES256",
        }
    }

    /// Whether this key, or its other half, made the signature.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Secret(key) => hmac::verify(key, message, signature),
            Self::Rsa { modulus: n, exponent: e } => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
        }
        .is_ok()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({})", self.algorithm())
    }
}

/// A key as RFC 7517 spells it, as far as it is looked at.
#[derive(Deserialize)]
pub(super) struct Jwk {
    #[serde(rename = "kty")]
    kind: String,
    #[serde(rename = "kid")]
    pub(super) id: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    #[serde(rename = "key_ops")]
    operations: Option<Vec<String>>,
    #[serde(rename = "alg")]
    algorithm: Option<String>,
    #[serde(rename = "crv")]
    curve: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    k: Option<String>,
}

fn bytes(member: Option<&String>, name: &'static str) -> Result<Vec<u8>, KeyError> {
    member.and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok()).ok_or(KeyError::Member(name))
}
