//! The 16 bytes that the records' one unique index is kept over.
//!
//! Four bytes of the client key's hash, then twelve of the hash of the whole record key. The index is narrow (random keys
//! dirty one page each, and narrow entries share pages), it finds a record by its key, and, by its first four bytes, the
//! records of a client key whatever their tenant and operation. The full key is compared after the reading: two keys of one
//! hash are reported as damage, never taken for each other.

use semel::RecordKey;
use sha2::{Digest, Sha256};

const PREFIX: usize = 4;

/// What the unique index holds of a record key.
pub(crate) type KeyHash = [u8; 16];

pub(crate) fn key_hash(key: &RecordKey) -> KeyHash {
    let mut hasher = Sha256::new();
    for part in [&key.tenant, &key.operation, &key.key] {
        // The length keeps ("ab", "c") and ("a", "bc") apart.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let whole = hasher.finalize();
    let mut hash = [0; 16];
    hash[..PREFIX].copy_from_slice(&prefix(&key.key));
    hash[PREFIX..].copy_from_slice(&whole[..16 - PREFIX]);
    hash
}

/// The lowest and the highest hash that a record of this client key can have.
pub(crate) fn client_key_range(client_key: &str) -> (KeyHash, KeyHash) {
    let prefix = prefix(client_key);
    let (mut low, mut high) = ([0; 16], [0xff; 16]);
    low[..PREFIX].copy_from_slice(&prefix);
    high[..PREFIX].copy_from_slice(&prefix);
    (low, high)
}

fn prefix(client_key: &str) -> [u8; PREFIX] {
    let hash = Sha256::digest(client_key.as_bytes());
    let mut prefix = [0; PREFIX];
    prefix.copy_from_slice(&hash[..PREFIX]);
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_lies_in_the_range_of_its_client_key() {
        let hash = key_hash(&RecordKey::new("tenant", "operation", "key-of-the-client"));
        let (low, high) = client_key_range("key-of-the-client");
        assert!(low <= hash && hash <= high);
    }

    #[test]
    fn parts_that_read_the_same_in_a_row_are_different_keys() {
        assert_ne!(key_hash(&RecordKey::new("ab", "c", "key")), key_hash(&RecordKey::new("a", "bc", "key")));
    }
}
