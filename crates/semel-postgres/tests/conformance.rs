//! The contract of all stores, on PostgreSQL: straight, by a clock that the tests move, and by way of PgBouncer in transaction mode.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod server_clock;

use semel::Store;
use semel_conformance::{Hands, Lacking, Subject};
use semel_postgres::{PgOptions, PgStore};
use semel_testing::database::Database;
use server_clock::Driven;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// How the server is reached.
trait Way: Send + Sync + 'static {
    fn options() -> PgOptions;
    fn url(database: &Database) -> String;
}

impl Hands for Driven {
    fn forward(&self, by: Duration) {
        self.pass(by);
    }

    fn jump(&self, by: Duration) {
        self.server.jump_blocking(by, false);
    }

    fn come_back(&self, by: Duration) {
        self.server.jump_blocking(by, true);
    }

    fn back(&self, by: Duration) {
        self.server.jump_blocking(by, true);
    }
}

async fn open_by(clock: &Driven) -> PgStore {
    let options = PgOptions::new().clock(clock.clone());
    options.connect(&clock.server.url()).await.expect("the database opens")
}

/// A store on a server whose clock the tests move.
struct ByAClock {
    store: PgStore,
    database: Database,
    clock: Driven,
}

impl Subject for ByAClock {
    async fn fresh() -> Self {
        let database = Database::new().await;
        let clock = Driven::of(&database).await;
        Self { store: open_by(&clock).await, database, clock }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Ok(Arc::new(open_by(&self.clock).await))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        let Self { store, database, clock } = self;
        store.close().await;
        Ok(Self { store: open_by(&clock).await, database, clock })
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.clock.clone()))
    }
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

mod by_a_clock {
    use super::*;

    semel_conformance::suite!(ByAClock);
}

mod by_pgbouncer {
    use super::*;

    semel_conformance::suite!(Postgres<ByPgBouncer>);
}
