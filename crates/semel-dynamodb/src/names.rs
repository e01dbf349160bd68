//! What items and attributes are called. Names are part of an item's size, so they are short; docs/decisions/dynamodb.md explains each.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use semel::{DueKind, KeyScope, OperationId, RecordKey};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// The table's partition key, which is the whole primary key.
pub(crate) const NAME: &str = "p";
/// The write id of the last write of a record.
pub(crate) const WRITE: &str = "w";
/// The operation id of a record.
pub(crate) const ID: &str = "id";
/// The version of a record.
pub(crate) const VERSION: &str = "v";
/// The history of a record, its length in bytes, and the items that older lines were folded into.
pub(crate) const HISTORY: &str = "h";
pub(crate) const HISTORY_SIZE: &str = "hs";
pub(crate) const FOLDED: &str = "hf";
/// Headers and body of an answer, or where they are.
pub(crate) const HEADERS: &str = "ah";
pub(crate) const BODY: &str = "ab";
pub(crate) const ANSWER_APART: &str = "ap";
/// A checkpoint, or where it is.
pub(crate) const CHECKPOINT: &str = "cp";
pub(crate) const CHECKPOINT_APART: &str = "ca";
/// The name of the record that a pointer or a part belongs to.
pub(crate) const RECORD: &str = "r";
/// The contents of a part, or of a remembered value.
pub(crate) const CONTENTS: &str = "d";
/// How many parts there are.
pub(crate) const PARTS: &str = "n";
/// Until when a record is live.
pub(crate) const LIVE_UNTIL: &str = "u";

/// The item of the clock, and the one of the key format and its secret.
pub(crate) const CLOCK: &str = "clock";
pub(crate) const FORMAT: &str = "format";

/// Over how many partitions an index is spread.
pub(crate) const SHARDS: u8 = 8;

/// An index: its name, and its two attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Index {
    pub(crate) name: &'static str,
    pub(crate) partition: &'static str,
    pub(crate) sort: &'static str,
    /// What is in it besides keys.
    pub(crate) projected: Option<&'static str>,
}

/// What waits for something, by kind, in the order of moments and ids.
pub(crate) const DUE: Index = Index { name: "due", partition: "dp", sort: "ds", projected: None };
/// All records, in the order in which they were made.
pub(crate) const LIST: Index = Index { name: "list", partition: "lp", sort: "ls", projected: None };
/// The records of a tenant, in the same order.
pub(crate) const TENANT: Index =
    Index { name: "tenant", partition: "np", sort: "ls", projected: Some(LIVE_UNTIL) };
/// Answers by the moment at which they end, and parts by the moment at which it is looked whether anybody needs them.
pub(crate) const ENDS: Index = Index { name: "ends", partition: "ep", sort: "es", projected: None };

pub(crate) const INDEXES: [Index; 4] = [DUE, LIST, TENANT, ENDS];

/// The name of a record's item.
pub(crate) fn record(key: &RecordKey) -> String {
    let mut hasher = Sha256::new();
    // Where a key is across all operations, the operation is no part of it.
    let operation = (key.scope == KeyScope::Operation).then_some(&key.operation);
    // The lengths keep ("ab", "c") and ("a", "bc") apart, and two parts from three.
    for part in [Some(&key.tenant), operation, Some(&key.key)].into_iter().flatten() {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    format!("r#{}", BASE64_URL_SAFE_NO_PAD.encode(hasher.finalize()))
}

/// The name of the pointer from an operation id to its record.
pub(crate) fn pointer(id: OperationId) -> String {
    format!("o#{id}")
}

/// The name of a part of what a write left apart.
pub(crate) fn part(write: WriteId, number: usize) -> String {
    format!("a#{write}#{number}")
}

/// The name of a remembered value's item.
pub(crate) fn remembered(name: &str) -> String {
    if name == semel::KeyFormat::SECRET { FORMAT.into() } else { format!("m#{name}") }
}

/// In which shard of an index a record is.
pub(crate) fn shard(id: OperationId) -> u8 {
    // The last byte of a UUIDv7 is random.
    id.as_bytes()[15] % SHARDS
}

/// The partition of what waits for this.
pub(crate) fn due_partition(kind: DueKind, shard: u8) -> String {
    format!("{}{shard}", kind.as_str())
}

/// A random number that tells a write from all others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WriteId(pub(crate) [u8; 16]);

impl WriteId {
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4().into_bytes())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(|uuid| Self(uuid.into_bytes()))
    }
}

impl std::fmt::Display for WriteId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Uuid::from_bytes(self.0).simple())
    }
}

/// A moment as bytes that sort as moments do.
pub(crate) fn sortable(millis: i64) -> [u8; 8] {
    (millis.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// The moment that a sort key begins with.
pub(crate) fn moment(sort: &[u8]) -> Option<i64> {
    let first: [u8; 8] = sort.get(..8)?.try_into().ok()?;
    Some((u64::from_be_bytes(first) ^ (1 << 63)).cast_signed())
}

/// A sort key of a moment and what tells those of one moment apart.
pub(crate) fn sort_key(millis: i64, rest: &[u8; 16]) -> Vec<u8> {
    [sortable(millis).as_slice(), rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_sort_as_bytes() {
        let moments = [i64::MIN, -1, 0, 1, 1_795_129_200_000, i64::MAX];
        for pair in moments.windows(2) {
            assert!(sortable(pair[0]) < sortable(pair[1]));
        }
        for at in moments {
            assert_eq!(moment(&sort_key(at, &[7; 16])), Some(at));
        }
    }

    #[test]
    fn parts_that_read_the_same_in_a_row_are_different_records() {
        let (one, other) = (RecordKey::new("ab", "c", "key"), RecordKey::new("a", "bc", "key"));
        assert_ne!(record(&one), record(&other));
    }
}
