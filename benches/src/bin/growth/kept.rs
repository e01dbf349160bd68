//! A store that is filled by its own schema, past the engine: an operation through a gateway is the pattern, and what differs from one
//! record to the next is made for each.

use semel::columns::{KeyHash, key_hash};
use semel::{RecordKey, Store};
use semel_benches::load::stored_key;
use std::error::Error;
use std::sync::Arc;
use uuid::Uuid;

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// Where records are kept.
pub(crate) trait Kept {
    /// The URL that a gateway opens it by.
    fn url(&self) -> String;

    /// Makes ready to be filled after the pattern: the one record that is there.
    fn begin(&mut self) -> Result<Pattern, Failure>;

    /// Adds records.
    fn add(&mut self, records: &[Made]) -> Result<(), Failure>;

    /// Ends the filling: everything is on the disk afterwards, and nothing is left to be tidied.
    fn settle(&mut self) -> Result<(), Failure>;

    /// How many bytes it takes on the disk for each record that it holds.
    fn bytes_for_a_key(&mut self) -> Result<f64, Failure>;

    /// Lets the windows of these records end at these moments, and their tombstones half a second later.
    fn ripen(&mut self, records: &[(KeyHash, i64)]) -> Result<(), Failure>;

    /// Opens it as an application does.
    fn open(&self) -> Result<Arc<dyn Store>, Failure>;
}

/// How long a tombstone stays of a record that was made ripe, in milliseconds.
pub(crate) const TOMBSTONE: i64 = 500;

/// What records are made after.
#[derive(Clone)]
pub(crate) struct Pattern {
    pub(crate) tenant: String,
    pub(crate) operation: String,
    pub(crate) created_at: i64,
}

/// What differs from the pattern.
pub(crate) struct Made {
    pub(crate) key: String,
    pub(crate) hash: KeyHash,
    pub(crate) operation_id: Uuid,
    pub(crate) owner: Uuid,
    /// By how many milliseconds all its times are earlier or later.
    pub(crate) shift: i64,
}

impl Pattern {
    /// The record of this number: as if one had been made in every millisecond before the pattern, up to number `most`.
    pub(crate) fn record(&self, number: u64, most: u64) -> Made {
        let shift = -i64::try_from(most.saturating_sub(number)).unwrap_or(0);
        let at = u64::try_from(self.created_at + shift).unwrap_or(0);
        let random = *Uuid::new_v4().as_bytes();
        let mut tail = [0; 10];
        tail.copy_from_slice(&random[..10]);
        Made {
            hash: self.hash(number),
            key: stored_key(number),
            operation_id: uuid::Builder::from_unix_timestamp_millis(at, &tail).into_uuid(),
            owner: Uuid::new_v4(),
            shift,
        }
    }

    pub(crate) fn hash(&self, number: u64) -> KeyHash {
        key_hash(&RecordKey::new(self.tenant.as_str(), self.operation.as_str(), stored_key(number)))
    }
}

/// The column list of an INSERT, and what is selected for it: five parameters for what differs, and the pattern's own else.
pub(crate) fn insertion(columns: &[String], parameters: [&str; 5]) -> (String, String) {
    let [hash, operation_id, key, owner, shift] = parameters;
    let value = |column: &String| match &**column {
        "key_hash" => hash.to_owned(),
        "operation_id" => operation_id.to_owned(),
        "key" => key.to_owned(),
        "owner" => owner.to_owned(),
        time if time.ends_with("_at") || time == "lease_until" => format!("p.{time} + {shift}"),
        other => format!("p.{other}"),
    };
    let columns: Vec<&String> = columns.iter().filter(|column| *column != "id").collect();
    let values: Vec<String> = columns.iter().map(|column| value(column)).collect();
    let columns: Vec<&str> = columns.iter().map(|column| column.as_str()).collect();
    (columns.join(", "), values.join(", "))
}
