//! For operators.

use super::row::{entry, event_columns};
use super::{SqliteOutbox, name_heads};
use crate::outbox::admin::{Entry, EntryFilter, EntryPage, MOST_COUNTED, OutboxAdmin, OutboxStats, Touched};
use rusqlite::{Connection, OptionalExtension as _, params};
use semel::audit::AuditEntry;
use semel::{StoreFuture, Timestamp};
use semel_sqlite::Transaction;
use std::time::Duration;
use uuid::Uuid;

impl OutboxAdmin for SqliteOutbox {
    fn stats(&self) -> StoreFuture<'_, OutboxStats> {
        Box::pin(self.store.query(stats))
    }

    fn list(&self, filter: EntryFilter, before: Option<Uuid>, limit: usize) -> StoreFuture<'_, EntryPage> {
        Box::pin(self.store.query(move |conn, now| list(conn, &filter, before, limit, now)))
    }

    fn find(&self, id: Uuid) -> StoreFuture<'_, (Timestamp, Option<Entry>)> {
        Box::pin(self.store.query(move |conn, now| Ok((now, find(conn, id)?))))
    }

    fn requeue(&self, id: Uuid, audit: Option<AuditEntry>) -> StoreFuture<'_, Touched> {
        Box::pin(self.write(move |tx| {
            if let Err(other) = refused(tx, id)? {
                return Ok(other);
            }
            tx.prepare_cached(
                "UPDATE semel_outbox SET attempts = 0, dead_letter = 0, retry_at = ?2 WHERE event_id = ?1",
            )?
            .execute(params![id.as_bytes(), tx.now().as_millis()])?;
            append(tx, audit.as_ref())?;
            Ok(find(tx, id)?.map_or(Touched::Missing, |entry| Touched::Done(Box::new(entry))))
        }))
    }

    fn discard(
        &self,
        id: Uuid,
        by: String,
        reason: String,
        audit: Option<AuditEntry>,
    ) -> StoreFuture<'_, Touched> {
        Box::pin(self.write(move |tx| {
            let entry = match refused(tx, id)? {
                Ok(entry) => entry,
                Err(other) => return Ok(other),
            };
            tx.prepare_cached(
                "INSERT OR REPLACE INTO semel_outbox_dropped
                        (event_id, dropped_at, created_at, attempts, aggregate, kind, last_error, dropped_by, reason)
                 SELECT event_id, ?2, created_at, attempts, aggregate, kind, last_error, ?3, ?4 FROM semel_outbox
                  WHERE event_id = ?1",
            )?
            .execute(params![id.as_bytes(), tx.now().as_millis(), by, reason])?;
            tx.prepare_cached("DELETE FROM semel_outbox WHERE event_id = ?1")?.execute([id.as_bytes()])?;
            name_heads(tx, [entry.event.aggregate.as_str()], tx.now())?;
            append(tx, audit.as_ref())?;
            Ok(Touched::Done(Box::new(entry)))
        }))
    }
}

fn append(tx: &Transaction<'_>, entry: Option<&AuditEntry>) -> rusqlite::Result<()> {
    entry.map_or(Ok(()), |entry| tx.audit(entry))
}

fn stats(conn: &Connection, now: Timestamp) -> rusqlite::Result<OutboxStats> {
    let mut statement = conn.prepare_cached(
        "SELECT (SELECT count(*) FROM (SELECT 1 FROM semel_outbox LIMIT ?1)),
                (SELECT count(*) FROM semel_outbox WHERE dead_letter = 1),
                (SELECT min(created_at) FROM (
                    SELECT (SELECT created_at FROM semel_outbox WHERE lane = l.lane AND parked = 0 ORDER BY id LIMIT 1)
                           AS created_at
                      FROM semel_outbox_lanes l
                    UNION ALL SELECT created_at FROM semel_outbox WHERE retry_at IS NOT NULL))",
    )?;
    statement.query_row([MOST_COUNTED], |row| {
        let oldest: Option<i64> = row.get(2)?;
        let oldest = oldest.map_or(Duration::ZERO, |created| now.after(Timestamp::from_millis(created)));
        let count = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        Ok(OutboxStats { backlog: count(0)?, dead_letters: count(1)?, oldest })
    })
}

fn list(
    conn: &Connection,
    filter: &EntryFilter,
    before: Option<Uuid>,
    limit: usize,
    now: Timestamp,
) -> rusqlite::Result<EntryPage> {
    // The words that dead letters have an index of are spelt out.
    let dead = match filter.dead_letter {
        Some(true) => " AND dead_letter = 1",
        Some(false) => " AND dead_letter = 0",
        None => "",
    };
    let sql = format!(
        "SELECT event_id, aggregate, kind, content_type, x'', attempts, parked, created_at, last_error, retry_at, dead_letter
           FROM semel_outbox
          WHERE (?1 IS NULL OR event_id < ?1) AND (?2 IS NULL OR aggregate = ?2) AND (?3 IS NULL OR kind = ?3){dead}
          ORDER BY event_id DESC LIMIT ?4"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let before = before.map(Uuid::into_bytes);
    // One more than asked for tells whether there is another page.
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let rows = statement.query_map(params![before, filter.aggregate, filter.kind, most], entry)?;
    let mut entries = rows.collect::<Result<Vec<_>, _>>()?;
    let more = entries.len() > limit;
    entries.truncate(limit);
    Ok(EntryPage { now, entries, more })
}

fn find(conn: &Connection, id: Uuid) -> rusqlite::Result<Option<Entry>> {
    const SQL: &str = concat!(
        "SELECT ",
        event_columns!(),
        ", created_at, last_error, retry_at, dead_letter FROM semel_outbox WHERE event_id = ?1"
    );
    conn.prepare_cached(SQL)?.query_row([id.as_bytes()], entry).optional()
}

/// The event; an error where an operator can do nothing about it.
fn refused(conn: &Connection, id: Uuid) -> rusqlite::Result<Result<Entry, Touched>> {
    Ok(match find(conn, id)? {
        None => Err(Touched::Missing),
        Some(entry) if entry.dead_letter || entry.retry.is_some() => Ok(entry),
        Some(entry) => Err(Touched::NotRefused(Box::new(entry))),
    })
}
