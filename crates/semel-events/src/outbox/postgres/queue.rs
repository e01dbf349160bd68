//! For publishers.

use super::row::{damaged, event_columns, lane, pending};
use super::{PgOutbox, commit, name_heads, now_sql, unavailable};
use crate::outbox::lane::{LANES, Lane};
use crate::outbox::queue::{Batch, Beat, LANE_BYTES, Pending, Queue, Refused, Settlement, Token};
use semel::StoreFuture;
use sqlx::Row as _;
use sqlx::postgres::PgConnection;
use std::collections::BTreeSet;
use std::time::Duration;

impl Queue for PgOutbox {
    fn beat(&self, token: Token, lease: Duration) -> StoreFuture<'_, Beat> {
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            let beat = beat(&mut transaction, token, millis(lease)).await.map_err(unavailable)?;
            commit(transaction).await?;
            Ok(beat)
        })
    }

    fn release(&self, token: Token, lanes: Vec<Lane>) -> StoreFuture<'_, ()> {
        const SQL: &str =
            "UPDATE semel_outbox_lanes SET owner = NULL, lease_until = 0 WHERE lane = ANY($1) AND owner = $2";
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            let held = hold(&mut transaction, token, &lanes).await.map_err(unavailable)?;
            let query = sqlx::query(SQL).persistent(false).bind(held).bind(token.uuid());
            query.execute(&mut *transaction).await.map_err(unavailable)?;
            commit(transaction).await
        })
    }

    fn leave(&self, token: Token) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.release(token, (0..LANES).collect()).await?;
            let mut transaction = self.begin().await?;
            let sql = "DELETE FROM semel_outbox_publishers WHERE owner = $1";
            let query = sqlx::query(sql).persistent(false).bind(token.uuid());
            query.execute(&mut *transaction).await.map_err(unavailable)?;
            commit(transaction).await
        })
    }

    fn read(&self, lanes: Vec<Lane>, per_lane: usize) -> StoreFuture<'_, Batch> {
        Box::pin(async move {
            let lanes: Vec<i16> = lanes.into_iter().map(i16::from).collect();
            let per_lane = i64::try_from(per_lane).unwrap_or(i64::MAX);
            let mut transaction = self.begin().await?;
            let query = sqlx::query(TRY_AGAIN).persistent(false).bind(&lanes).bind(per_lane).bind(LANE_BYTES);
            let again = query.fetch_all(&mut *transaction).await.map_err(unavailable)?;
            let again: Result<Vec<Pending>, _> = again.iter().map(pending).collect();
            let mut batch = Batch { events: again.map_err(damaged)?, ..Batch::default() };
            let spent: Vec<i64> = lanes.iter().map(|lane| bytes(&batch.events, *lane)).collect();
            let query = sqlx::query(FRESH).persistent(false).bind(&lanes).bind(per_lane).bind(LANE_BYTES);
            let fresh = query.bind(&spent).fetch_all(&mut *transaction).await.map_err(unavailable)?;
            commit(transaction).await?;
            for row in &fresh {
                let event = pending(row).map_err(damaged)?;
                let behind: bool = row.try_get(9).map_err(damaged)?;
                if behind { &mut batch.behind } else { &mut batch.events }.push(event);
            }
            Ok(batch)
        })
    }

    fn settle(&self, token: Token, settlement: Settlement) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut transaction = self.begin().await?;
            settle(&mut transaction, token, &settlement).await.map_err(unavailable)?;
            commit(transaction).await
        })
    }
}

/// The payloads that were taken of a lane.
fn bytes(events: &[Pending], lane: i16) -> i64 {
    let of_lane = events.iter().filter(|pending| i16::from(pending.lane) == lane);
    of_lane.map(|pending| i64::try_from(pending.event.payload.len()).unwrap_or(LANE_BYTES)).sum()
}

/// What was never refused, and whether something before it was. A lane's payloads are taken up to a limit, towards which those count that
/// are tried again ($4, by lane), and one in any case.
const FRESH: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", o.id, o.lane, EXISTS (SELECT 1 FROM semel_outbox p WHERE p.parked AND p.aggregate = o.aggregate)
       FROM unnest($1::smallint[], $4::bigint[]) AS l (lane, spent)
      CROSS JOIN LATERAL (
        SELECT first.*, sum(octet_length(first.payload)) OVER (ORDER BY first.id) - octet_length(first.payload) AS bytes_before
          FROM (SELECT * FROM semel_outbox WHERE lane = l.lane AND NOT parked ORDER BY id LIMIT $2) first) o
      WHERE o.bytes_before = 0 OR o.bytes_before + l.spent < $3
      ORDER BY o.id"
);

/// What was refused and is due again, and what waits behind it: the aggregates of a lane in the order in which they became due, up to the
/// lane's limit. What is left out of an aggregate comes after what is taken of it.
const TRY_AGAIN: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", o.id, o.lane
       FROM (SELECT first.*, sum(octet_length(first.payload)) OVER (PARTITION BY first.lane ORDER BY head.due, first.id)
                               - octet_length(first.payload) AS bytes_before
               FROM (SELECT aggregate, retry_at AS due FROM semel_outbox
                      WHERE lane = ANY($1::smallint[]) AND retry_at <= ",
    now_sql!(),
    " ORDER BY retry_at LIMIT $2) head
              CROSS JOIN LATERAL (
                SELECT * FROM semel_outbox p WHERE p.parked AND p.aggregate = head.aggregate ORDER BY p.id LIMIT $2) first) o
      WHERE o.bytes_before < $3
      ORDER BY o.id"
);

async fn beat(conn: &mut PgConnection, token: Token, lease: i64) -> Result<Beat, sqlx::Error> {
    const LIVE: &str = concat!(
        "INSERT INTO semel_outbox_publishers (owner, lease_until) VALUES ($1, ",
        now_sql!(),
        " + $2) ON CONFLICT (owner) DO UPDATE SET lease_until = excluded.lease_until"
    );
    const BURY: &str = concat!(
        "DELETE FROM semel_outbox_publishers WHERE owner IN (
           SELECT owner FROM semel_outbox_publishers WHERE lease_until <= ",
        now_sql!(),
        " FOR UPDATE SKIP LOCKED)"
    );
    const COUNT: &str =
        concat!("SELECT count(*) FROM semel_outbox_publishers WHERE lease_until > ", now_sql!());
    const RENEW: &str = concat!(
        "UPDATE semel_outbox_lanes SET lease_until = ",
        now_sql!(),
        " + $2 WHERE owner = $1 RETURNING lane"
    );
    const TAKE: &str = concat!(
        "UPDATE semel_outbox_lanes SET owner = $1, lease_until = ",
        now_sql!(),
        " + $2 WHERE lane IN (
           SELECT lane FROM semel_outbox_lanes WHERE owner IS NULL OR lease_until <= ",
        now_sql!(),
        " ORDER BY lane LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING lane"
    );
    let owner = token.uuid();
    sqlx::query(LIVE).persistent(false).bind(owner).bind(lease).execute(&mut *conn).await?;
    sqlx::query(BURY).persistent(false).execute(&mut *conn).await?;
    let live: i64 = sqlx::query(COUNT).persistent(false).fetch_one(&mut *conn).await?.try_get(0)?;
    let share = usize::from(LANES).div_ceil(usize::try_from(live).unwrap_or(1).max(1));
    hold(conn, token, &(0..LANES).collect::<Vec<_>>()).await?;
    let mut rows = sqlx::query(RENEW).persistent(false).bind(owner).bind(lease).fetch_all(&mut *conn).await?;
    let room = share.saturating_sub(rows.len());
    if room > 0 {
        let query = sqlx::query(TAKE).persistent(false).bind(owner).bind(lease);
        rows.extend(query.bind(i64::try_from(room).unwrap_or(0)).fetch_all(conn).await?);
    }
    let lanes: Result<BTreeSet<Lane>, _> = rows.iter().map(|row| lane(row, 0)).collect();
    Ok(Beat { lanes: lanes?.into_iter().collect(), share })
}

/// Locks those of the lanes that the publisher holds, in order, so that no two that do this wait for each other.
async fn hold(conn: &mut PgConnection, token: Token, lanes: &[Lane]) -> Result<Vec<i16>, sqlx::Error> {
    let sql =
        "SELECT lane FROM semel_outbox_lanes WHERE lane = ANY($1) AND owner = $2 ORDER BY lane FOR UPDATE";
    let lanes: Vec<i16> = lanes.iter().copied().map(i16::from).collect();
    let query = sqlx::query(sql).persistent(false).bind(lanes).bind(token.uuid());
    query.fetch_all(conn).await?.iter().map(|row| row.try_get(0)).collect()
}

async fn settle(conn: &mut PgConnection, token: Token, settlement: &Settlement) -> Result<(), sqlx::Error> {
    const GONE: &str = "DELETE FROM semel_outbox WHERE event_id = ANY($1) AND NOT parked";
    let Settlement { published, refused, behind } = settlement;
    let (again, fresh): (Vec<&Pending>, Vec<&Pending>) = published.iter().partition(|event| event.parked);
    let ids = |events: &[&Pending]| events.iter().map(|pending| pending.event.id).collect::<Vec<_>>();
    if !fresh.is_empty() {
        sqlx::query(GONE).persistent(false).bind(ids(&fresh)).execute(&mut *conn).await?;
    }
    let parked: Vec<&Pending> =
        again.iter().copied().chain(refused.iter().map(|refused| &refused.event)).chain(behind).collect();
    if parked.is_empty() {
        return Ok(());
    }
    let lanes: BTreeSet<Lane> = parked.iter().map(|pending| pending.lane).collect();
    let held = hold(conn, token, &lanes.into_iter().collect::<Vec<_>>()).await?;
    if !again.is_empty() {
        let sql = "DELETE FROM semel_outbox WHERE event_id = ANY($1) AND lane = ANY($2)";
        sqlx::query(sql).persistent(false).bind(ids(&again)).bind(&held).execute(&mut *conn).await?;
    }
    count_refusals(conn, refused, &held).await?;
    if !behind.is_empty() {
        let sql = "UPDATE semel_outbox o SET parked = true
                    WHERE event_id = ANY($1) AND lane = ANY($2) AND NOT parked
                      AND EXISTS (SELECT 1 FROM semel_outbox p WHERE p.parked AND p.aggregate = o.aggregate AND p.id < o.id)";
        let ids = ids(&behind.iter().collect::<Vec<_>>());
        sqlx::query(sql).persistent(false).bind(ids).bind(&held).execute(&mut *conn).await?;
    }
    let aggregates: BTreeSet<&str> = parked
        .iter()
        .filter(|pending| held.contains(&i16::from(pending.lane)))
        .map(|pending| pending.event.aggregate.as_str())
        .collect();
    name_heads(conn, &aggregates.into_iter().collect::<Vec<_>>()).await
}

/// A refusal that was counted already, because the answer to the commit was lost, does not count again.
async fn count_refusals(
    conn: &mut PgConnection,
    refused: &[Refused],
    held: &[i16],
) -> Result<(), sqlx::Error> {
    const SQL: &str = concat!(
        "UPDATE semel_outbox o
            SET attempts = r.attempts + 1, last_error = r.error, parked = true, dead_letter = r.retry_in IS NULL, retry_at = ",
        now_sql!(),
        " + r.retry_in
           FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::bigint[]) AS r (event_id, attempts, error, retry_in)
          WHERE o.event_id = r.event_id AND o.attempts = r.attempts AND o.lane = ANY($5) AND NOT o.dead_letter"
    );
    if refused.is_empty() {
        return Ok(());
    }
    let all = || refused.iter();
    let attempts = |refused: &Refused| i32::try_from(refused.event.attempts).unwrap_or(i32::MAX - 1);
    sqlx::query(SQL)
        .persistent(false)
        .bind(all().map(|refused| refused.event.event.id).collect::<Vec<_>>())
        .bind(all().map(attempts).collect::<Vec<_>>())
        .bind(all().map(|refused| refused.error.as_str()).collect::<Vec<_>>())
        .bind(all().map(|refused| refused.retry_in.map(millis)).collect::<Vec<_>>())
        .bind(held)
        .execute(conn)
        .await
        .map(drop)
}

fn millis(duration: Duration) -> i64 {
    // Far enough in the future, and no overflow when a moment is added to it.
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 4)
}
