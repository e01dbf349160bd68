//! For operators.

use super::row::{damaged, entry, event_columns};
use super::{PgOutbox, commit, name_heads, now_sql, unavailable};
use crate::outbox::admin::{Entry, EntryFilter, EntryPage, MOST_COUNTED, OutboxAdmin, OutboxStats, Touched};
use semel::audit::AuditEntry;
use semel::{StoreError, StoreFuture, Timestamp};
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};
use std::time::Duration;
use uuid::Uuid;

/// Everything of one event, and the server's now.
const FIND: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", o.created_at, o.last_error, o.retry_at, o.dead_letter, ",
    now_sql!(),
    " FROM semel_outbox o WHERE o.event_id = $1"
);

impl OutboxAdmin for PgOutbox {
    fn stats(&self) -> StoreFuture<'_, OutboxStats> {
        const SQL: &str = concat!(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM semel_outbox LIMIT $1) counted),
                    (SELECT count(*) FROM semel_outbox WHERE dead_letter),
                    (SELECT min(created_at) FROM (
                        SELECT first.created_at FROM semel_outbox_lanes l
                         CROSS JOIN LATERAL (SELECT created_at FROM semel_outbox
                                              WHERE lane = l.lane AND NOT parked ORDER BY id LIMIT 1) first
                        UNION ALL SELECT created_at FROM semel_outbox WHERE retry_at IS NOT NULL) moving),",
            now_sql!()
        );
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            let query = sqlx::query(SQL).persistent(false).bind(MOST_COUNTED);
            let row = query.fetch_one(&mut *transaction).await.map_err(unavailable)?;
            commit(transaction).await?;
            stats(&row).map_err(damaged)
        })
    }

    fn list(&self, filter: EntryFilter, before: Option<Uuid>, limit: usize) -> StoreFuture<'_, EntryPage> {
        // The payload stays where it is. The words that dead letters have an index of are spelt out.
        macro_rules! list_sql {
            ($dead:literal) => {
                concat!(
                    "SELECT o.event_id, o.aggregate, o.kind, o.content_type, ''::bytea, o.attempts, o.parked,
                            o.created_at, o.last_error, o.retry_at, o.dead_letter
                       FROM semel_outbox o
                      WHERE ($1::uuid IS NULL OR o.event_id < $1) AND ($2::text IS NULL OR o.aggregate = $2)
                        AND ($3::text IS NULL OR o.kind = $3)",
                    $dead,
                    " ORDER BY o.event_id DESC LIMIT $4"
                )
            };
        }
        Box::pin(async move {
            let sql = match filter.dead_letter {
                Some(true) => list_sql!(" AND o.dead_letter"),
                Some(false) => list_sql!(" AND NOT o.dead_letter"),
                None => list_sql!(""),
            };
            let mut transaction = self.begin().await?;
            // One more than asked for tells whether there is another page.
            let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let query =
                sqlx::query(sql).persistent(false).bind(before).bind(filter.aggregate).bind(filter.kind);
            let rows = query.bind(most).fetch_all(&mut *transaction).await.map_err(unavailable)?;
            let now = now(&mut transaction).await.map_err(unavailable)?;
            commit(transaction).await?;
            let entries: Result<Vec<Entry>, _> = rows.iter().take(limit).map(entry).collect();
            Ok(EntryPage { now, entries: entries.map_err(damaged)?, more: rows.len() > limit })
        })
    }

    fn find(&self, id: Uuid) -> StoreFuture<'_, (Timestamp, Option<Entry>)> {
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            let found = find(&mut transaction, id).await.map_err(unavailable)?;
            let now = now(&mut transaction).await.map_err(unavailable)?;
            commit(transaction).await?;
            Ok((now, found))
        })
    }

    fn requeue(&self, id: Uuid, audit: Option<AuditEntry>) -> StoreFuture<'_, Touched> {
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            let touched = requeue(&mut transaction, id).await.map_err(unavailable)?;
            append(&mut transaction, &touched, audit).await?;
            commit(transaction).await?;
            Ok(touched)
        })
    }

    fn discard(
        &self,
        id: Uuid,
        by: String,
        reason: String,
        audit: Option<AuditEntry>,
    ) -> StoreFuture<'_, Touched> {
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            let touched = discard(&mut transaction, id, &by, &reason).await.map_err(unavailable)?;
            append(&mut transaction, &touched, audit).await?;
            commit(transaction).await?;
            Ok(touched)
        })
    }
}

/// Appends the entry about what was done, if it was.
async fn append(
    conn: &mut PgConnection,
    touched: &Touched,
    entry: Option<AuditEntry>,
) -> Result<(), StoreError> {
    match (touched, entry) {
        (Touched::Done(_), Some(entry)) => semel_postgres::audit_in(conn, &entry).await.map_err(unavailable),
        _ => Ok(()),
    }
}

fn stats(row: &PgRow) -> Result<OutboxStats, sqlx::Error> {
    let count = |column: usize| Ok::<_, sqlx::Error>(row.try_get::<i64, _>(column)?.unsigned_abs());
    let now = Timestamp::from_millis(row.try_get(3)?);
    let oldest: Option<i64> = row.try_get(2)?;
    let oldest = oldest.map_or(Duration::ZERO, |created| now.after(Timestamp::from_millis(created)));
    Ok(OutboxStats { backlog: count(0)?, dead_letters: count(1)?, oldest })
}

async fn now(conn: &mut PgConnection) -> Result<Timestamp, sqlx::Error> {
    const SQL: &str = concat!("SELECT ", now_sql!());
    let row = sqlx::query(SQL).persistent(false).fetch_one(conn).await?;
    row.try_get(0).map(Timestamp::from_millis)
}

async fn find(conn: &mut PgConnection, id: Uuid) -> Result<Option<Entry>, sqlx::Error> {
    let row = sqlx::query(FIND).persistent(false).bind(id).fetch_optional(conn).await?;
    row.as_ref().map(entry).transpose()
}

/// The event, under the lock of its lane; an error where an operator can do nothing about it.
async fn refused(conn: &mut PgConnection, id: Uuid) -> Result<Result<Entry, Touched>, sqlx::Error> {
    let sql = "SELECT lane FROM semel_outbox_lanes
                WHERE lane = (SELECT lane FROM semel_outbox WHERE event_id = $1) FOR UPDATE";
    sqlx::query(sql).persistent(false).bind(id).fetch_optional(&mut *conn).await?;
    // A statement of its own: it sees what was committed while the lock was waited for.
    Ok(match find(conn, id).await? {
        None => Err(Touched::Missing),
        Some(entry) if entry.dead_letter || entry.retry.is_some() => Ok(entry),
        Some(entry) => Err(Touched::NotRefused(Box::new(entry))),
    })
}

async fn requeue(conn: &mut PgConnection, id: Uuid) -> Result<Touched, sqlx::Error> {
    const SQL: &str = concat!(
        "UPDATE semel_outbox SET attempts = 0, dead_letter = false, retry_at = ",
        now_sql!(),
        " WHERE event_id = $1"
    );
    if let Err(other) = refused(conn, id).await? {
        return Ok(other);
    }
    sqlx::query(SQL).persistent(false).bind(id).execute(&mut *conn).await?;
    Ok(find(conn, id).await?.map_or(Touched::Missing, |entry| Touched::Done(Box::new(entry))))
}

async fn discard(conn: &mut PgConnection, id: Uuid, by: &str, reason: &str) -> Result<Touched, sqlx::Error> {
    const SQL: &str = concat!(
        "WITH gone AS (DELETE FROM semel_outbox WHERE event_id = $1
           RETURNING event_id, created_at, attempts, aggregate, kind, last_error)
         INSERT INTO semel_outbox_dropped (event_id, dropped_at, created_at, attempts, aggregate, kind, last_error, dropped_by, reason)
         SELECT event_id, ",
        now_sql!(),
        ", created_at, attempts, aggregate, kind, last_error, $2, $3 FROM gone
         ON CONFLICT (event_id) DO UPDATE SET dropped_at = excluded.dropped_at, dropped_by = excluded.dropped_by, reason = excluded.reason"
    );
    let entry = match refused(conn, id).await? {
        Ok(entry) => entry,
        Err(other) => return Ok(other),
    };
    sqlx::query(SQL).persistent(false).bind(id).bind(by).bind(reason).execute(&mut *conn).await?;
    name_heads(conn, &[&entry.event.aggregate]).await?;
    Ok(Touched::Done(Box::new(entry)))
}
