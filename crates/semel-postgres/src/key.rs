//! The 16 bytes that the records' one unique index is kept over ([`semel::columns::KeyHash`]), and the lock that stands for a key.

use semel::RecordKey;
use uuid::Uuid;

/// What the unique index holds of a record key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct KeyHash([u8; 16]);

impl KeyHash {
    pub(crate) fn of(key: &RecordKey) -> Self {
        Self(semel::columns::key_hash(key))
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
    let (low, high) = semel::columns::client_key_range(client_key);
    (Uuid::from_bytes(low), Uuid::from_bytes(high))
}
