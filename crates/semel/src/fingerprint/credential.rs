//! The tenant behind a credential, named by a keyed hash.

use super::parts::Parts;
use super::secret::{FingerprintSecret, hex};

/// The tenant that a credential stands for (an `Authorization` header, an API key, a certificate): a keyed hash, so that
/// the store never holds the credential nor anything to test guesses against.
#[must_use]
pub fn tenant_of_credential(secret: &FingerprintSecret, credential: &[u8]) -> String {
    let mut parts = Parts::new("semel credential 1", Some(secret));
    parts.piece(credential);
    format!("cred_{}", hex(&parts.finish()[..16]))
}
