//! An empty store for each side of each round.

use semel::Store;
use semel_benches::postgres;
use semel_postgres::{PgOptions, PgStore};
use semel_private_postgres::Cluster;
use semel_sqlite::SqliteStore;
use sqlx::{Executor as _, PgPool};
use std::error::Error;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

pub(crate) type Opening<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn Store>, Box<dyn Error>>> + 'a>>;

/// Where stores come from.
pub(crate) trait Stores {
    /// One without a record.
    fn open(&self) -> Opening<'_>;
}

pub(crate) struct Sqlite {
    directory: TempDir,
    opened: AtomicUsize,
}

impl Sqlite {
    pub(crate) fn in_directory(directory: &Path) -> std::io::Result<Self> {
        Ok(Self { directory: tempfile::tempdir_in(directory)?, opened: AtomicUsize::new(0) })
    }
}

impl Stores for Sqlite {
    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            let number = self.opened.fetch_add(1, Ordering::Relaxed);
            let store = SqliteStore::open(self.directory.path().join(format!("{number}.db"))).await?;
            Ok(Arc::new(store) as Arc<dyn Store>)
        })
    }
}

pub(crate) struct Postgres(Cluster);

impl Postgres {
    pub(crate) fn start(directory: &Path) -> Result<Self, Box<dyn Error>> {
        Ok(Self(postgres::start(directory)?))
    }
}

impl Stores for Postgres {
    fn open(&self) -> Opening<'_> {
        Box::pin(async {
            let url = self.0.url("postgres");
            PgOptions::new().migrate(&url).await?;
            let pool = PgPool::connect(&url).await?;
            pool.execute("TRUNCATE semel_records, semel_history").await?;
            pool.close().await;
            Ok(Arc::new(PgStore::connect(&url).await?) as Arc<dyn Store>)
        })
    }
}
