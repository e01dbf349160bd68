//! Sends a statement to the server, and classifies its failure.

use crate::connections::Connections;
use crate::draft::PgQuery;
use crate::error::{of_a_commit, unavailable};
use semel::StoreError;
use sqlx::Connection;
use sqlx::postgres::PgRow;

/// The connections to the server, and how statements are sent over them.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) connections: Connections,
    /// Whether statements may be prepared. Behind a pooler in transaction mode they may not: the next use of the same connection
    /// may find itself on another one of the server's.
    pub(crate) prepared: bool,
}

impl Server {
    /// Runs a statement that writes, and commits it. [`StoreError::Lost`] only where it may have been committed.
    pub(crate) async fn write(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        let mut taken = self.connections.take().await.map_err(|error| unavailable(&error))?;
        let rows = if self.prepared {
            query.fetch_all(taken.conn()).await.map_err(|error| of_a_commit(&error))?
        } else {
            // The driver sends "parse" and "execute" in two turns, and between two turns a pooler in transaction mode may change
            // the server's connection under it, unless a transaction holds on to it.
            let failed = |error: sqlx::Error| unavailable(&error);
            let mut transaction = taken.conn().begin().await.map_err(failed)?;
            let rows = query.persistent(false).fetch_all(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(|error| of_a_commit(&error))?;
            rows
        };
        self.connections.give_back(taken);
        Ok(rows)
    }

    /// Runs a statement that only reads.
    pub(crate) async fn read(&self, query: PgQuery<'_>) -> Result<Vec<PgRow>, StoreError> {
        let failed = |error: sqlx::Error| unavailable(&error);
        let mut taken = self.connections.take().await.map_err(failed)?;
        let rows = if self.prepared {
            query.fetch_all(taken.conn()).await.map_err(failed)?
        } else {
            let mut transaction = taken.conn().begin().await.map_err(failed)?;
            let rows = query.persistent(false).fetch_all(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            rows
        };
        self.connections.give_back(taken);
        Ok(rows)
    }
}
