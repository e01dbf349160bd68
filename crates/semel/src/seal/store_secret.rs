//! Secrets that are kept in a store, under names of their own, and sealed there by the keyring.

use super::envelope::{self, Unopened, is_sealed};
use super::keyring::{Keyring, SealingKey};
use super::part;
use crate::store::StoreError;
use bytes::Bytes;

/// The secret as it is kept under `name`.
pub(crate) fn seal_secret(key: &SealingKey, name: &str, secret: &[u8]) -> Bytes {
    let fill = |bytes: &mut Vec<u8>| bytes.extend_from_slice(secret);
    envelope::seal(key, &bound(name, key.id()), secret.len(), fill)
}

/// The secret that is kept as `kept` under `name`. One that is not sealed is what it is.
///
/// # Errors
/// [`StoreError::Damaged`], as for everything that does not open. It names the key that is missing.
pub(crate) fn open_secret(keyring: Option<&Keyring>, name: &str, kept: Bytes) -> Result<Bytes, StoreError> {
    if !is_sealed(&kept) {
        return Ok(kept);
    }
    envelope::open(keyring, |id| bound(name, id), kept).map_err(|error| {
        StoreError::Damaged(match error {
            Unopened::KeyMissing(id) => format!(
                "\"{name}\" in the store is sealed by the key \"{id}\", which is not configured: put it back into [encryption]"
            ),
            Unopened::Tampered => {
                format!("\"{name}\" in the store cannot be decrypted: wrong key for this id, or altered")
            }
        })
    })
}

/// The secret sealed by the key that seals now; `None`: it is so already, or nothing seals.
///
/// # Errors
/// As [`open_secret`].
pub(crate) fn resealed(keyring: &Keyring, name: &str, kept: &Bytes) -> Result<Option<Bytes>, StoreError> {
    match keyring.sealing_key() {
        Some(key) if envelope::sealed_by(kept) != Some(key.id()) => {
            let secret = open_secret(Some(keyring), name, kept.clone())?;
            Ok(Some(seal_secret(key, name, &secret)))
        }
        _ => Ok(None),
    }
}

fn bound(name: &str, id: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    for text in ["semel store secret 1", name, id] {
        part(&mut bytes, text.as_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, byte: u8) -> SealingKey {
        SealingKey::new(id, &[byte; 32]).unwrap()
    }

    #[test]
    fn a_secret_opens_under_its_own_name_and_by_its_own_key_alone() {
        let (old, new) = (key("old", 1), key("new", 2));
        let kept = seal_secret(&old, "secret/one", b"the secret");
        let both = Keyring::new([new, old.clone()]).unwrap();
        assert_eq!(open_secret(Some(&both), "secret/one", kept.clone()).unwrap(), "the secret");
        let why = |result: Result<Bytes, StoreError>| result.unwrap_err().to_string();
        assert!(why(open_secret(Some(&both), "secret/two", kept.clone())).contains("cannot be decrypted"));
        assert!(
            why(open_secret(None, "secret/one", kept.clone())).contains("\"old\", which is not configured")
        );

        let renewed = resealed(&both, "secret/one", &kept).unwrap().expect("another key seals now");
        assert_eq!(envelope::sealed_by(&renewed), Some("new"));
        assert_eq!(open_secret(Some(&both), "secret/one", renewed.clone()).unwrap(), "the secret");
        assert_eq!(resealed(&both, "secret/one", &renewed).unwrap(), None);
        assert_eq!(resealed(&both.open_only(), "secret/one", &kept).unwrap(), None);
    }
}
