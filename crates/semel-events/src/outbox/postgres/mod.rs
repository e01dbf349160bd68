//! The outbox on PostgreSQL.
//!
//! All statements run inside transactions and none is prepared by name: poolers in transaction mode such as PgBouncer are fine.
//! No transaction is open while something is published, and no lock outlives its transaction.

mod admin;
mod append;
mod queue;
mod row;

pub use append::{AppendError, append, append_all};

use semel::StoreError;
use semel_postgres::PgStore;
use sqlx::postgres::PgConnection;
use sqlx::{PgPool, Postgres, Transaction};

/// The outbox of a [`PgStore`]: a [`Queue`](super::Queue) for publishers, and a [`OutboxAdmin`](super::OutboxAdmin) for operators.
#[derive(Clone, Debug)]
pub struct PgOutbox {
    pool: PgPool,
}

impl PgOutbox {
    /// The outbox in the store's database, over the store's connections.
    #[must_use]
    pub fn of(store: &PgStore) -> Self {
        Self { pool: store.pool().clone() }
    }

    async fn begin(&self) -> Result<Transaction<'static, Postgres>, StoreError> {
        semel_postgres::begin(&self.pool).await.map_err(unavailable)
    }
}

/// Nothing was committed.
fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

async fn commit(transaction: Transaction<'_, Postgres>) -> Result<(), StoreError> {
    transaction.commit().await.map_err(|error| StoreError::Lost(error.to_string()))
}

/// The server's clock, in milliseconds since 1970.
macro_rules! now_sql {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    };
}
use now_sql;

/// The first parked event of each of these aggregates is the one that is tried again: at once, unless it has a time already or is
/// a dead letter. Called under the lock of their lanes.
async fn name_heads(conn: &mut PgConnection, aggregates: &[&str]) -> Result<(), sqlx::Error> {
    const SQL: &str = concat!(
        "UPDATE semel_outbox SET retry_at = ",
        now_sql!(),
        " WHERE retry_at IS NULL AND NOT dead_letter AND event_id IN (
            SELECT first.event_id FROM unnest($1::text[]) AS a (aggregate)
            CROSS JOIN LATERAL (
              SELECT event_id FROM semel_outbox WHERE parked AND aggregate = a.aggregate ORDER BY id LIMIT 1) first)"
    );
    sqlx::query(SQL).persistent(false).bind(aggregates).execute(conn).await.map(drop)
}
