//! The secret of keyed hashes.

use core::fmt;
use hmac::{Hmac, KeyInit};
use sha2::{Digest, Sha256};

/// The secret that keys fingerprints and the tenant names that are derived from credentials. Without it, a reader of the
/// store could try out small bodies, or credentials, against the hashes in it.
///
/// `Debug` shows nothing of it.
#[derive(Clone)]
pub struct FingerprintSecret {
    /// The secret as HMAC uses it: a block of its hash function, longer secrets hashed.
    key: [u8; 64],
    /// The hash with the key taken in, which takes as long as two blocks of what is hashed.
    begun: Hmac<Sha256>,
    id: String,
}

impl PartialEq for FingerprintSecret {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for FingerprintSecret {}

impl FingerprintSecret {
    /// The fewest bytes of a secret.
    pub const MIN_BYTES: usize = 16;

    /// The secret with these bytes.
    ///
    /// # Errors
    /// [`SecretTooShort`] below [`MIN_BYTES`](Self::MIN_BYTES).
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, SecretTooShort> {
        let bytes = bytes.as_ref();
        if bytes.len() < Self::MIN_BYTES {
            return Err(SecretTooShort { bytes: bytes.len() });
        }
        let mut key = [0; 64];
        if bytes.len() > key.len() {
            key[..32].copy_from_slice(&Sha256::digest(bytes));
        } else {
            key[..bytes.len()].copy_from_slice(bytes);
        }
        let id = Sha256::new().chain_update("semel secret id").chain_update(bytes).finalize();
        Ok(Self { begun: Hmac::new(&key.into()), key, id: hex(&id[..8]) })
    }

    /// Names the secret without telling it: what a recipe keeps, so that a record made under another secret is found
    /// out instead of being taken for another request.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn hmac(&self) -> Hmac<Sha256> {
        self.begun.clone()
    }
}

impl fmt::Debug for FingerprintSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FingerprintSecret(…)")
    }
}

/// A secret that could be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fingerprint secret has {bytes} bytes: at least 16 are needed, best 32 random ones")]
pub struct SecretTooShort {
    /// How many there are.
    pub bytes: usize,
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
