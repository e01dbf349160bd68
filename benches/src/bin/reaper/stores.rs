//! An empty store for each side of each round.

use semel::Store;
use semel_benches::postgres;
use semel_postgres::{PgOptions, PgStore};
use semel_sqlite::SqliteStore;
use semel_testing::servers::Cluster;
use sqlx::{Executor as _, PgPool};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

type Failure = Box<dyn Error>;

/// Where stores come from.
pub(crate) enum Stores {
    /// Files in a directory, and how many there were.
    Sqlite(TempDir, AtomicUsize),
    Postgres(Cluster),
}

impl Stores {
    pub(crate) fn start(directory: &Path, on_postgres: bool) -> Result<Self, Failure> {
        if on_postgres {
            return Ok(Self::Postgres(postgres::start(directory)?));
        }
        Ok(Self::Sqlite(tempfile::tempdir_in(directory.canonicalize()?)?, AtomicUsize::new(0)))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(..) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// The address of one without a record.
    pub(crate) async fn empty(&self) -> Result<String, Failure> {
        match self {
            Self::Sqlite(directory, opened) => {
                let number = opened.fetch_add(1, Ordering::Relaxed);
                Ok(format!("sqlite:{}", directory.path().join(format!("{number}.db")).display()))
            }
            Self::Postgres(cluster) => {
                let url = cluster.url("postgres");
                PgOptions::new().migrate(&url).await?;
                let pool = PgPool::connect(&url).await?;
                pool.execute("TRUNCATE semel_records, semel_answers, semel_history").await?;
                pool.close().await;
                Ok(url)
            }
        }
    }

    /// One without a record.
    pub(crate) async fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        at(&self.empty().await?).await
    }
}

/// The one at this address, with what is in it.
pub(crate) async fn at(address: &str) -> Result<Arc<dyn Store>, Failure> {
    Ok(match address.strip_prefix("sqlite:") {
        Some(file) => Arc::new(SqliteStore::open(file).await?),
        None => Arc::new(PgStore::connect(address).await?),
    })
}
