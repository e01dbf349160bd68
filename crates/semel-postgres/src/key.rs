//! The 16 bytes that the records' one unique index is kept over, and the lock that stands for a key.
//!
//! Four bytes of the client key's hash, then twelve of the hash of the whole record key, as in the SQLite store. The index is
//! narrow whatever the length of tenant, operation and key, it finds a record by its key, and, by its first four bytes, the
//! records of a client key whatever their tenant and operation. The full key is compared after the reading: two keys of one
//! hash are reported as damage, never taken for each other.

use semel::RecordKey;
use sha2::{Digest, Sha256};
use uuid::Uuid;

const PREFIX: usize = 4;

/// What the unique index holds of a record key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct KeyHash([u8; 16]);

impl KeyHash {
    pub(crate) fn of(key: &RecordKey) -> Self {
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
        Self(hash)
    }

    /// As the column holds it. Both sort byte by byte.
    pub(crate) fn uuid(self) -> Uuid {
        Uuid::from_bytes(self.0)
    }

    /// The number of the advisory lock that stands for the key: the last eight bytes, which are of the whole key's hash. The
    /// statement that finds a record for a same-transaction act computes the same from the column.
    pub(crate) fn lock(self) -> i64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[8..]);
        i64::from_be_bytes(bytes)
    }
}

/// The lowest and the highest hash that a record of this client key can have.
pub(crate) fn client_key_range(client_key: &str) -> (Uuid, Uuid) {
    let prefix = prefix(client_key);
    let (mut low, mut high) = ([0; 16], [0xff; 16]);
    low[..PREFIX].copy_from_slice(&prefix);
    high[..PREFIX].copy_from_slice(&prefix);
    (Uuid::from_bytes(low), Uuid::from_bytes(high))
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
        let hash = KeyHash::of(&RecordKey::new("tenant", "operation", "key-of-the-client")).uuid();
        let (low, high) = client_key_range("key-of-the-client");
        assert!(low <= hash && hash <= high);
    }

    #[test]
    fn parts_that_read_the_same_in_a_row_are_different_keys() {
        let (one, other) = (RecordKey::new("ab", "c", "key"), RecordKey::new("a", "bc", "key"));
        assert_ne!(KeyHash::of(&one), KeyHash::of(&other));
        assert_ne!(KeyHash::of(&one).lock(), KeyHash::of(&other).lock());
    }
}
