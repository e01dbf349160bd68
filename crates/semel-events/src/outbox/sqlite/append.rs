//! Appending, in the store's transaction or the application's own.

use crate::message::Event;
use crate::outbox::event::InvalidEvent;
use crate::outbox::lane::Place;
use rusqlite::{Connection, params};
use semel::Timestamp;
use semel_sqlite::{ActError, Transaction, time_in};

/// Why nothing was appended. Returning it with `?` rolls the domain statements back too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The event cannot be told.
    #[error(transparent)]
    Invalid(#[from] InvalidEvent),
    /// The application's own connection is not fit for it.
    #[error(transparent)]
    Connection(#[from] ActError),
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// Appends events in the store's transaction, in this order: they are published if that commits.
///
/// ```
/// use semel_events::message::Event;
/// use semel_events::outbox::sqlite::{AppendError, append};
/// # use semel_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let store = SqliteStore::open(directory.path().join("semel.db")).await?;
/// # store.transaction(|tx| tx.execute_batch("CREATE TABLE payments (id TEXT PRIMARY KEY)")).await?;
/// let event = Event::json("payment/pay_1", "PaymentCreated", r#"{"amount":1000}"#);
/// store
///     .transaction(move |tx| {
///         tx.execute("INSERT INTO payments VALUES ('pay_1')", [])?;
///         append(tx, &[event])
///     })
///     .await?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// Nothing of them is to be committed: see [`AppendError`].
pub fn append(transaction: &Transaction<'_>, events: &[Event]) -> Result<(), AppendError> {
    append_at(transaction, events, transaction.now())
}

/// Appends events in the open write transaction of an application's own connection to the store's file.
///
/// # Errors
/// Nothing of them is to be committed: see [`AppendError`].
pub fn append_in(conn: &Connection, events: &[Event]) -> Result<(), AppendError> {
    let now = time_in(conn)?;
    append_at(conn, events, now)
}

fn append_at(conn: &Connection, events: &[Event], now: Timestamp) -> Result<(), AppendError> {
    events.iter().try_for_each(Event::check)?;
    let mut statement = conn.prepare_cached(
        "INSERT INTO semel_outbox (event_id, created_at, lane, aggregate, kind, content_type, payload)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for event in events {
        statement.execute(params![
            event.id.as_bytes(),
            now.as_millis(),
            Place::of(&event.aggregate).lane,
            event.aggregate,
            event.kind,
            event.content_type,
            &*event.payload,
        ])?;
    }
    Ok(())
}
