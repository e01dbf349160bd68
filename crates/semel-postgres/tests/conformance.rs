//! The contract of all stores, on PostgreSQL: straight, and by way of PgBouncer in transaction mode.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

use semel::Store;
use semel_conformance::{Hands, Lacking, Subject};
use semel_postgres::{PgOptions, PgStore};
use semel_testing::database::Database;
use std::marker::PhantomData;
use std::sync::Arc;

/// How the server is reached.
trait Way: Send + Sync + 'static {
    fn options() -> PgOptions;
    fn url(database: &Database) -> String;
}

struct Straight;

impl Way for Straight {
    fn options() -> PgOptions {
        PgOptions::new()
    }

    fn url(database: &Database) -> String {
        database.url()
    }
}

struct ByPgBouncer;

impl Way for ByPgBouncer {
    fn options() -> PgOptions {
        PgOptions::new().without_prepared_statements()
    }

    fn url(database: &Database) -> String {
        database.url_by_pgbouncer()
    }
}

struct Postgres<W> {
    store: PgStore,
    database: Database,
    way: PhantomData<W>,
}

async fn open<W: Way>(database: &Database) -> PgStore {
    W::options().connect(&W::url(database)).await.expect("the database opens")
}

impl<W: Way> Subject for Postgres<W> {
    async fn fresh() -> Self {
        let database = Database::without_records().await;
        Self { store: open::<W>(&database).await, database, way: PhantomData }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Ok(Arc::new(open::<W>(&self.database).await))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        self.store.close().await;
        Ok(Self { store: open::<W>(&self.database).await, ..self })
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Err(Lacking("its time is that of a server that other tests use too"))
    }
}

mod straight {
    use super::*;

    semel_conformance::suite!(Postgres<Straight>);
}

mod by_pgbouncer {
    use super::*;

    semel_conformance::suite!(Postgres<ByPgBouncer>);
}
