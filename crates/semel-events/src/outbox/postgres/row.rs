//! Rows of the outbox, read.

use crate::message::Event;
use crate::outbox::admin::Entry;
use crate::outbox::lane::{LANES, Lane};
use crate::outbox::queue::Pending;
use bytes::Bytes;
use semel::{StoreError, Timestamp};
use sqlx::Row as _;
use sqlx::postgres::PgRow;

/// What both readings select of `o`, in the order of [`event`], and then attempts and parked.
macro_rules! event_columns {
    () => {
        "o.event_id, o.aggregate, o.kind, o.content_type, o.payload, o.attempts, o.parked"
    };
}
pub(super) use event_columns;

pub(super) fn damaged(error: sqlx::Error) -> StoreError {
    StoreError::Damaged(format!("an event of the outbox cannot be read: {error}"))
}

fn event(row: &PgRow) -> Result<Event, sqlx::Error> {
    Ok(Event {
        id: row.try_get(0)?,
        aggregate: row.try_get(1)?,
        kind: row.try_get(2)?,
        content_type: row.try_get(3)?,
        payload: Bytes::copy_from_slice(row.try_get(4)?),
    })
}

fn attempts(row: &PgRow) -> Result<u32, sqlx::Error> {
    Ok(u32::try_from(row.try_get::<i32, _>(5)?).unwrap_or(0))
}

/// With `id` and `lane` after the columns of all.
pub(super) fn pending(row: &PgRow) -> Result<Pending, sqlx::Error> {
    let (event, attempts, parked) = (event(row)?, attempts(row)?, row.try_get(6)?);
    Ok(Pending { event, id: row.try_get(7)?, lane: lane(row, 8)?, attempts, parked })
}

pub(super) fn lane(row: &PgRow, column: usize) -> Result<Lane, sqlx::Error> {
    let number: i16 = row.try_get(column)?;
    let lane = Lane::try_from(number).ok().filter(|lane| *lane < LANES);
    lane.ok_or_else(|| sqlx::Error::Decode(format!("there is no lane {number}").into()))
}

/// With `created_at`, `last_error`, `retry_at` and `dead_letter` after the columns of all.
pub(super) fn entry(row: &PgRow) -> Result<Entry, sqlx::Error> {
    let moment = |millis: i64| Timestamp::from_millis(millis);
    Ok(Entry {
        event: event(row)?,
        attempts: attempts(row)?,
        parked: row.try_get(6)?,
        created: moment(row.try_get(7)?),
        last_error: row.try_get(8)?,
        retry: row.try_get::<Option<i64>, _>(9)?.map(moment),
        dead_letter: row.try_get(10)?,
    })
}
