//! Reading by key and by operation id.

use crate::call::Server;
use crate::clock::{Answered, StoreClock};
use crate::key::KeyHash;
use crate::row::{AFTER_RECORD, NAME, computed, decode};
use semel::{Now, OperationId, Record, RecordKey, StoreError};
use sqlx::postgres::PgRow;
use std::collections::HashMap;
use uuid::Uuid;

/// The records that a statement found.
#[derive(Default)]
pub(crate) struct Found {
    by_hash: HashMap<KeyHash, Record>,
    /// Why others cannot be read, by the names that were asked for.
    damaged: HashMap<Uuid, String>,
}

impl Found {
    /// The record of this key, or why it cannot be read.
    pub(crate) fn by_hash(&self, hash: KeyHash, key: &RecordKey) -> Result<Option<&Record>, String> {
        if let Some(why) = self.damaged.get(&hash.uuid()) {
            return Err(why.clone());
        }
        match self.by_hash.get(&hash) {
            Some(record) if !record.key.is_same_record(key) => {
                Err(format!("operation {}: its key has the hash of another key", record.operation_id))
            }
            found => Ok(found),
        }
    }

    /// The records by operation id.
    pub(crate) fn by_id(self) -> Result<HashMap<OperationId, Record>, StoreError> {
        match self.damaged.into_values().next() {
            Some(why) => Err(StoreError::Damaged(why)),
            None => Ok(self.by_hash.into_values().map(|record| (record.operation_id, record)).collect()),
        }
    }
}

/// The records of these names, and the time.
pub(crate) async fn read(
    server: &Server,
    clock: &StoreClock,
    sql: &'static str,
    names: Vec<Uuid>,
) -> Result<(Now, Found), StoreError> {
    let asked = clock.ask();
    let rows = server.read(sqlx::query(sql).bind(asked.numbers).bind(names)).await?;
    let now = clock.judged(&asked, &moment(&rows)?)?;
    let mut found = Found::default();
    for row in &rows {
        match decode(row, true) {
            Ok(Some(record)) => {
                found.by_hash.insert(KeyHash::of(&record.key), record);
            }
            Ok(None) => {}
            Err(StoreError::Damaged(why)) => {
                found.damaged.insert(computed(row, NAME)?, why);
            }
            Err(error) => return Err(error),
        }
    }
    Ok((now, found))
}

/// The time that a reading statement returned, if decisions may be based on what it read.
pub(crate) fn moment(rows: &[PgRow]) -> Result<Answered, StoreError> {
    let row = rows.first().ok_or_else(|| StoreError::Damaged("the server returned no row".into()))?;
    not_on_a_standby(row, AFTER_RECORD + 1)?;
    Answered::of(&computed::<Vec<i64>>(row, AFTER_RECORD)?)
}

/// A standby is behind: what it does not know may be there all the same.
pub(crate) fn not_on_a_standby(row: &PgRow, flag: usize) -> Result<(), StoreError> {
    if computed(row, flag)? {
        return Err(StoreError::Unavailable("the server is a standby: its data may be stale".into()));
    }
    Ok(())
}
