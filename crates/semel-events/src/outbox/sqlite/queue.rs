//! For publishers.

use super::row::{event_columns, pending};
use super::{SqliteOutbox, name_heads};
use crate::outbox::lane::{LANES, Lane};
use crate::outbox::queue::{Batch, Beat, LANE_BYTES, Pending, Queue, Settlement, Token};
use rusqlite::{Connection, params};
use semel::{StoreFuture, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;

impl Queue for SqliteOutbox {
    fn beat(&self, token: Token, lease: Duration) -> StoreFuture<'_, Beat> {
        Box::pin(self.write(move |tx| beat(tx, token, tx.now(), tx.now().plus(lease))))
    }

    fn release(&self, token: Token, lanes: Vec<Lane>) -> StoreFuture<'_, ()> {
        Box::pin(self.write(move |tx| release(tx, token, &lanes)))
    }

    fn leave(&self, token: Token) -> StoreFuture<'_, ()> {
        Box::pin(self.write(move |tx| {
            release(tx, token, &(0..LANES).collect::<Vec<_>>())?;
            tx.prepare_cached("DELETE FROM semel_outbox_publishers WHERE owner = ?1")?
                .execute([token.uuid().as_bytes()])
                .map(drop)
        }))
    }

    fn read(&self, lanes: Vec<Lane>, per_lane: usize) -> StoreFuture<'_, Batch> {
        let per_lane = i64::try_from(per_lane).unwrap_or(i64::MAX);
        Box::pin(async move { self.store.query(move |conn, now| read(conn, &lanes, per_lane, now)).await })
    }

    fn settle(&self, token: Token, settlement: Settlement) -> StoreFuture<'_, ()> {
        Box::pin(self.write(move |tx| settle(tx, token, &settlement, tx.now())))
    }
}

fn beat(conn: &Connection, token: Token, now: Timestamp, until: Timestamp) -> rusqlite::Result<Beat> {
    let (owner, now, until) = (token.uuid(), now.as_millis(), until.as_millis());
    let owner = owner.as_bytes();
    conn.prepare_cached("DELETE FROM semel_outbox_publishers WHERE lease_until <= ?1")?.execute([now])?;
    conn.prepare_cached(
        "INSERT INTO semel_outbox_publishers (owner, lease_until) VALUES (?1, ?2)
         ON CONFLICT (owner) DO UPDATE SET lease_until = excluded.lease_until",
    )?
    .execute(params![owner, until])?;
    let live: i64 = conn
        .prepare_cached("SELECT count(*) FROM semel_outbox_publishers")?
        .query_row([], |row| row.get(0))?;
    let share = usize::from(LANES).div_ceil(usize::try_from(live).unwrap_or(1).max(1));
    let held = conn
        .prepare_cached("UPDATE semel_outbox_lanes SET lease_until = ?2 WHERE owner = ?1")?
        .execute(params![owner, until])?;
    conn.prepare_cached(
        "UPDATE semel_outbox_lanes SET owner = ?1, lease_until = ?2 WHERE lane IN (
           SELECT lane FROM semel_outbox_lanes WHERE owner IS NULL OR lease_until <= ?3 ORDER BY lane LIMIT ?4)",
    )?
    .execute(params![owner, until, now, i64::try_from(share.saturating_sub(held)).unwrap_or(0)])?;
    let mut statement =
        conn.prepare_cached("SELECT lane FROM semel_outbox_lanes WHERE owner = ?1 ORDER BY lane")?;
    let lanes = statement.query_map([owner], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(Beat { lanes, share })
}

fn release(conn: &Connection, token: Token, lanes: &[Lane]) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(
        "UPDATE semel_outbox_lanes SET owner = NULL, lease_until = 0 WHERE lane = ?1 AND owner = ?2",
    )?;
    for lane in lanes {
        statement.execute(params![lane, token.uuid().as_bytes()])?;
    }
    Ok(())
}

fn read(conn: &Connection, lanes: &[Lane], per_lane: i64, now: Timestamp) -> rusqlite::Result<Batch> {
    const FRESH: &str = concat!(
        "SELECT ",
        event_columns!(),
        ", id, lane, EXISTS (SELECT 1 FROM semel_outbox p WHERE p.parked = 1 AND p.aggregate = o.aggregate)
           FROM semel_outbox o WHERE lane = ?1 AND parked = 0 ORDER BY id LIMIT ?2"
    );
    const DUE: &str =
        "SELECT aggregate FROM semel_outbox WHERE lane = ?1 AND retry_at <= ?3 ORDER BY retry_at LIMIT ?2";
    const TRY_AGAIN: &str = concat!(
        "SELECT ",
        event_columns!(),
        ", id, lane, 0 FROM semel_outbox WHERE aggregate = ?1 AND parked = 1 ORDER BY id LIMIT ?2"
    );
    let mut batch = Batch::default();
    let (mut fresh, mut due) = (conn.prepare_cached(FRESH)?, conn.prepare_cached(DUE)?);
    let mut again = conn.prepare_cached(TRY_AGAIN)?;
    for lane in lanes {
        let aggregates = due
            .query_map(params![lane, per_lane, now.as_millis()], |row| row.get::<_, String>(0))?
            .collect::<Result<Vec<_>, _>>()?;
        let mut bytes = 0;
        for aggregate in aggregates {
            take(again.query(params![aggregate, per_lane])?, 0, &mut bytes, &mut batch)?;
        }
        take(fresh.query(params![lane, per_lane])?, 1, &mut bytes, &mut batch)?;
    }
    Ok(batch)
}

/// Takes rows until the payloads of their lane are enough, and so many in any case.
fn take(
    mut rows: rusqlite::Rows<'_>,
    in_any_case: usize,
    bytes: &mut i64,
    batch: &mut Batch,
) -> rusqlite::Result<()> {
    let mut taken = 0;
    while (*bytes < LANE_BYTES || taken < in_any_case)
        && let Some(row) = rows.next()?
    {
        let event = pending(row)?;
        taken += 1;
        *bytes += i64::try_from(event.event.payload.len()).unwrap_or(LANE_BYTES);
        if row.get(9)? { &mut batch.behind } else { &mut batch.events }.push(event);
    }
    Ok(())
}

fn settle(conn: &Connection, token: Token, settlement: &Settlement, now: Timestamp) -> rusqlite::Result<()> {
    let Settlement { published, refused, behind } = settlement;
    let held = held(conn, token)?;
    let held = |pending: &&Pending| held.contains(&pending.lane);
    // One that was read before it was parked is to be tried again by whoever parked it.
    let mut gone = conn.prepare_cached("DELETE FROM semel_outbox WHERE event_id = ?1 AND parked = ?2")?;
    for pending in published.iter().filter(|pending| !pending.parked || held(pending)) {
        gone.execute(params![pending.event.id.as_bytes(), pending.parked])?;
    }
    // A refusal that was counted already, because the answer to the commit was lost, does not count again.
    let mut count = conn.prepare_cached(
        "UPDATE semel_outbox SET attempts = ?2 + 1, last_error = ?3, parked = 1, dead_letter = ?4 IS NULL, retry_at = ?4
          WHERE event_id = ?1 AND attempts = ?2 AND dead_letter = 0",
    )?;
    for refused in refused.iter().filter(|refused| held(&&refused.event)) {
        let retry_at = refused.retry_in.map(|wait| now.plus(wait).as_millis());
        count.execute(params![
            refused.event.event.id.as_bytes(),
            refused.event.attempts,
            refused.error,
            retry_at
        ])?;
    }
    let mut park = conn.prepare_cached(
        "UPDATE semel_outbox SET parked = 1 WHERE event_id = ?1 AND parked = 0
            AND EXISTS (SELECT 1 FROM semel_outbox p
                         WHERE p.parked = 1 AND p.aggregate = semel_outbox.aggregate AND p.id < semel_outbox.id)",
    )?;
    for pending in behind.iter().filter(held) {
        park.execute([pending.event.id.as_bytes()])?;
    }
    let again = published.iter().filter(|pending| pending.parked);
    let touched = again.chain(refused.iter().map(|refused| &refused.event)).chain(behind).filter(held);
    let aggregates: BTreeSet<&str> = touched.map(|pending| pending.event.aggregate.as_str()).collect();
    name_heads(conn, aggregates, now)
}

fn held(conn: &Connection, token: Token) -> rusqlite::Result<BTreeSet<Lane>> {
    let mut statement = conn.prepare_cached("SELECT lane FROM semel_outbox_lanes WHERE owner = ?1")?;
    statement.query_map([token.uuid().as_bytes()], |row| row.get(0))?.collect()
}
