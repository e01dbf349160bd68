//! Rows of the outbox, read.

use crate::message::Event;
use crate::outbox::admin::Entry;
use crate::outbox::lane::LANES;
use crate::outbox::queue::Pending;
use bytes::Bytes;
use rusqlite::Row;
use rusqlite::types::Type;
use semel::Timestamp;
use uuid::Uuid;

/// What all readings select, in the order of [`event`], and then attempts and parked.
macro_rules! event_columns {
    () => {
        "event_id, aggregate, kind, content_type, payload, attempts, parked"
    };
}
pub(super) use event_columns;

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        id: Uuid::from_bytes(row.get(0)?),
        aggregate: row.get(1)?,
        kind: row.get(2)?,
        content_type: row.get(3)?,
        payload: Bytes::from(row.get::<_, Vec<u8>>(4)?),
    })
}

/// With `id` and `lane` after the columns of all.
pub(super) fn pending(row: &Row<'_>) -> rusqlite::Result<Pending> {
    let lane = row.get(8)?;
    if lane >= LANES {
        let error = format!("there is no lane {lane}");
        return Err(rusqlite::Error::FromSqlConversionFailure(8, Type::Integer, error.into()));
    }
    Ok(Pending { event: event(row)?, attempts: row.get(5)?, parked: row.get(6)?, id: row.get(7)?, lane })
}

/// With `created_at`, `last_error`, `retry_at` and `dead_letter` after the columns of all.
pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        event: event(row)?,
        attempts: row.get(5)?,
        parked: row.get(6)?,
        created: Timestamp::from_millis(row.get(7)?),
        last_error: row.get(8)?,
        retry: row.get::<_, Option<i64>>(9)?.map(Timestamp::from_millis),
        dead_letter: row.get(10)?,
    })
}
