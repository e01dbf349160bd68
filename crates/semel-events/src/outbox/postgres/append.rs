//! Appending, in the application's own transaction.

use super::now_sql;
use crate::message::Event;
use crate::outbox::event::InvalidEvent;
use crate::outbox::lane::Place;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

/// Why nothing was appended. Returning it with `?` rolls the domain statements back too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The event cannot be told.
    #[error(transparent)]
    Invalid(#[from] InvalidEvent),
    /// The connection is in no transaction.
    #[error(
        "the connection is not in a transaction: begin one with sqlx (`pool.begin()`), and commit it after the event was \
         appended"
    )]
    NoTransaction,
    /// The transaction would be seen before it is on disk, and the event told of something that a crash can undo.
    #[error(
        "synchronous_commit is neither on nor remote_apply in this transaction: an event could be published although its commit is lost later"
    )]
    NotDurable,
    /// The server or the connection failed.
    #[error(transparent)]
    Sqlx(#[from] sqlx::Error),
}

/// Appends an event in the open transaction of `conn`: it is published if that commits.
///
/// Until the transaction ends, others that append to the same aggregate wait for it; that is what makes the order of the events the
/// order of the commits. A transaction with events of several aggregates appends them by [`append_all`], which locks in a fixed
/// order: two that lock the same aggregates one by one in different orders deadlock, and the server ends one of them.
///
/// ```no_run
/// # use semel_events::message::Event;
/// # use semel_events::outbox::postgres::{AppendError, append};
/// # async fn run(db: sqlx::PgPool) -> Result<(), AppendError> {
/// let mut tx = db.begin().await?;
/// sqlx::query("INSERT INTO payments (id, amount) VALUES ($1, $2)").bind("pay_1").bind(1_000_i64).execute(&mut *tx).await?;
/// append(&mut tx, &Event::json("payment/pay_1", "PaymentCreated", r#"{"amount":1000}"#)).await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// Nothing was appended: see [`AppendError`].
pub async fn append(conn: &mut PgConnection, event: &Event) -> Result<(), AppendError> {
    append_all(conn, std::slice::from_ref(event)).await
}

/// Appends events in the open transaction of `conn`, in this order, in one statement.
///
/// Each aggregate takes an entry in the server's table of locks until the transaction ends. By default that table has room for some
/// thousands in all (`max_locks_per_transaction` × `max_connections`).
///
/// # Errors
/// Nothing was appended: see [`AppendError`].
pub async fn append_all(conn: &mut PgConnection, events: &[Event]) -> Result<(), AppendError> {
    // The locks come before the identities are drawn: the condition is judged before the first row is made.
    const SQL: &str = concat!(
        "WITH locked AS MATERIALIZED (SELECT count(pg_advisory_xact_lock(key)) AS keys FROM unnest($1::bigint[]) AS k (key))
         INSERT INTO semel_outbox (event_id, created_at, lane, aggregate, kind, content_type, payload)
         SELECT event_id, ",
        now_sql!(),
        ", lane, aggregate, kind, content_type, payload
           FROM unnest($2::uuid[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::bytea[])
                AS e (event_id, lane, aggregate, kind, content_type, payload)
          WHERE (SELECT keys FROM locked) > 0 AND current_setting('synchronous_commit') IN ('on', 'remote_apply')"
    );
    events.iter().try_for_each(Event::check)?;
    if !conn.is_in_transaction() {
        return Err(AppendError::NoTransaction);
    }
    if events.is_empty() {
        return Ok(());
    }
    let places: Vec<Place> = events.iter().map(|event| Place::of(&event.aggregate)).collect();
    let mut keys: Vec<i64> = places.iter().map(|place| place.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let all = || events.iter();
    let appended = sqlx::query(SQL)
        .persistent(false)
        .bind(keys)
        .bind(all().map(|event| event.id).collect::<Vec<_>>())
        .bind(places.iter().map(|place| i16::from(place.lane)).collect::<Vec<_>>())
        .bind(all().map(|event| event.aggregate.as_str()).collect::<Vec<_>>())
        .bind(all().map(|event| event.kind.as_str()).collect::<Vec<_>>())
        .bind(all().map(|event| event.content_type.as_str()).collect::<Vec<_>>())
        .bind(all().map(|event| event.payload.as_ref()).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    if appended.rows_affected() == 0 {
        return Err(AppendError::NotDurable);
    }
    Ok(())
}
