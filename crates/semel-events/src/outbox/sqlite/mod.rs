//! The outbox in a SQLite file, for as many processes as share it.

mod admin;
mod append;
mod queue;
mod row;

pub use append::{AppendError, append, append_in};

use rusqlite::{Connection, params};
use semel::{StoreError, Timestamp};
use semel_sqlite::{SqliteStore, Transaction, TransactionError};

/// The outbox of a [`SqliteStore`]: a [`Queue`](super::Queue) for publishers, and a [`OutboxAdmin`](super::OutboxAdmin) for operators.
#[derive(Clone, Debug)]
pub struct SqliteOutbox {
    store: SqliteStore,
}

impl SqliteOutbox {
    /// The outbox in the store's file.
    #[must_use]
    pub fn of(store: &SqliteStore) -> Self {
        Self { store: store.clone() }
    }

    /// Does it in the store's next transaction.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.store.transaction(work).await.map_err(|error| match error {
            TransactionError::Store(error) => error,
            TransactionError::Application(error) => StoreError::Unavailable(error.to_string()),
            other => StoreError::Unavailable(other.to_string()),
        })
    }
}

/// The first parked event of each of these aggregates is the one that is tried again: at once, unless it has a time already or is
/// a dead letter.
fn name_heads<'a>(
    conn: &Connection,
    aggregates: impl IntoIterator<Item = &'a str>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let mut statement = conn.prepare_cached(
        "UPDATE semel_outbox SET retry_at = ?2
          WHERE retry_at IS NULL AND dead_letter = 0
            AND id = (SELECT id FROM semel_outbox WHERE parked = 1 AND aggregate = ?1 ORDER BY id LIMIT 1)",
    )?;
    for aggregate in aggregates {
        statement.execute(params![aggregate, now.as_millis()])?;
    }
    Ok(())
}
