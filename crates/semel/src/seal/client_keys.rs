//! Client keys, sealed so that equal keys stay equal: records are found by them.
//!
//! ```text
//! "sealed 1:" base64url( nonce (24) | sealed (n) | tag (16) )
//! ```
//!
//! The nonce is an HMAC of the key: the same key gives the same text, and two keys share a nonce only if 192 bits of HMAC-SHA-256 collide.

use crate::store::SEALED_KEY;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{AeadInOut as _, KeyInit as _};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::fmt;

const NONCE: usize = 24;
const TAG: usize = 16;
/// Bound to every seal.
const PURPOSE: &[u8] = b"semel client key 1";

/// Seals and opens client keys by the secret of one store. `Debug` shows nothing of it.
#[derive(Clone)]
pub(crate) struct ClientKeys {
    cipher: XChaCha20Poly1305,
    nonces: Hmac<Sha256>,
}

impl ClientKeys {
    /// The bytes of a secret.
    pub(crate) const SECRET_BYTES: usize = 32;

    /// By this secret, which is random.
    pub(crate) fn new(secret: &[u8; Self::SECRET_BYTES]) -> Self {
        let derived = |label: &[u8]| {
            let mut hmac = keyed(secret);
            hmac.update(label);
            hmac.finalize().into_bytes()
        };
        let (seal, nonces) = (derived(b"semel client keys: seal"), derived(b"semel client keys: nonce"));
        Self { cipher: XChaCha20Poly1305::new(&Key::from(<[u8; 32]>::from(seal))), nonces: keyed(&nonces) }
    }

    /// The key as it is stored.
    pub(crate) fn seal(&self, key: &str) -> String {
        let mut hmac = self.nonces.clone();
        hmac.update(key.as_bytes());
        let mut nonce = [0; NONCE];
        nonce.copy_from_slice(&hmac.finalize().into_bytes()[..NONCE]);
        let mut bytes = Vec::with_capacity(NONCE + key.len() + TAG);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(key.as_bytes());
        #[expect(clippy::expect_used, reason = "it fails beyond 256 GiB alone, which no memory holds")]
        let tag = self
            .cipher
            .encrypt_inout_detached(&XNonce::from(nonce), PURPOSE, (&mut bytes[NONCE..]).into())
            .expect("a key is short enough to be sealed");
        bytes.extend_from_slice(&tag);
        let mut text = String::with_capacity(SEALED_KEY.len() + bytes.len() * 4 / 3 + 2);
        text.push_str(SEALED_KEY);
        URL_SAFE_NO_PAD.encode_string(&bytes, &mut text);
        text
    }

    /// The key as the client sent it; `None`: this is not what was stored.
    pub(crate) fn open(&self, stored: &str) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(stored.strip_prefix(SEALED_KEY)?).ok()?;
        let (nonce, rest) = bytes.split_first_chunk_mut::<NONCE>()?;
        let (sealed, tag) = rest.split_last_chunk_mut::<TAG>()?;
        let opened = self.cipher.decrypt_inout_detached(
            &XNonce::from(*nonce),
            PURPOSE,
            (&mut *sealed).into(),
            &(*tag).into(),
        );
        opened.ok()?;
        String::from_utf8(sealed.to_vec()).ok()
    }
}

fn keyed(key: &[u8]) -> Hmac<Sha256> {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    Hmac::new_from_slice(key).expect("a key of any length will do")
}

impl fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_give_equal_text_and_open_to_what_they_were() {
        let keys = ClientKeys::new(&[7; 32]);
        let longest = "k".repeat(255);
        for key in
            ["", "k", "7fb0f4a0-8d6f-4d69-a1ec-2d5c0b1b2c3d", &longest, "sealed 1:AAAA", "schl\u{fc}ssel"]
        {
            let stored = keys.seal(key);
            assert_eq!(stored, ClientKeys::new(&[7; 32]).seal(key));
            assert!(stored.starts_with(SEALED_KEY) && (key.len() < 5 || !stored.contains(key)), "{stored}");
            assert_eq!(keys.open(&stored).as_deref(), Some(key));
            assert_ne!(stored, ClientKeys::new(&[8; 32]).seal(key), "by another secret it is another text");
            assert_eq!(ClientKeys::new(&[8; 32]).open(&stored), None);
        }
        assert_ne!(keys.seal("key-1"), keys.seal("key-2"));
    }

    #[test]
    fn what_was_altered_does_not_open() {
        let keys = ClientKeys::new(&[7; 32]);
        let stored = keys.seal("a key of a client");
        for at in SEALED_KEY.len()..stored.len() - 1 {
            let mut altered = stored.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(keys.open(&String::from_utf8(altered).unwrap()), None, "{at}");
        }
        for wrong in ["", "a key of a client", SEALED_KEY, "sealed 1:AAAA", &stored[..stored.len() - 2]] {
            assert_eq!(keys.open(wrong), None, "{wrong}");
        }
    }
}
