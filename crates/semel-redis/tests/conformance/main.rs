//! The contract of all stores, with Redis in front: over SQLite and over PostgreSQL on a real Redis, and over SQLite on one that lies.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod clock;
#[path = "../liar/mod.rs"]
mod liar;
#[path = "../../../semel-postgres/tests/server_clock/mod.rs"]
mod server_clock;

use clock::{Driven, TierClock};
use liar::Liar;
use semel::clock::Clock;
use semel::{Environment, Store};
use semel_conformance::{Hands, Lacking, Subject};
use semel_postgres::{PgOptions, PgStore};
use semel_redis::{TierOptions, Tiered};
use semel_sqlite::{SqliteOptions, SqliteStore};
use semel_testing::database::Database;
use semel_testing::servers::Server;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tempfile::TempDir;

/// The Redis that stores have in front of them.
trait Front: Send + Sync + 'static {
    fn url() -> String;

    /// How long it may take to answer.
    const TIMEOUT: Duration;

    /// Whether there is a guard. A Redis that gives back a guard that it was to forget calls an operation in progress for two seconds that has ended on
    /// another instance. That is the one difference there may be, and a test of its own shows its limits.
    const GUARD: bool;
}

/// A real one. Time enough for a machine that does other things as well: the tier is to be in use all the time.
struct Honest;

impl Front for Honest {
    fn url() -> String {
        Server::Redis.url()
    }

    const TIMEOUT: Duration = Duration::from_secs(1);
    const GUARD: bool = true;
}

/// One that lies. It answers late, too, and is left alone for a while then.
struct Lying;

impl Front for Lying {
    fn url() -> String {
        static LIAR: OnceLock<Liar> = OnceLock::new();
        LIAR.get_or_init(Liar::start).url()
    }

    const TIMEOUT: Duration = Duration::from_millis(50);
    const GUARD: bool = false;
}

async fn tiered<F: Front, C: Clock>(store: Arc<dyn Store>, clock: TierClock<C>) -> Tiered {
    let mut options = TierOptions::default();
    options.timeout = F::TIMEOUT;
    options.guard = F::GUARD;
    options.environment = Environment::new(Arc::new(clock), Arc::new(clock::Random));
    let tiered = Tiered::with_options(store, F::url().parse().expect("a URL"), options).expect("settings");
    let counts = tiered.counts();
    while counts.is_open() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tiered
}

struct OverSqlite<F> {
    tiered: Tiered,
    store: SqliteStore,
    directory: TempDir,
    clock: TierClock<Driven>,
    front: std::marker::PhantomData<F>,
}

async fn open_sqlite(directory: &TempDir, clock: &TierClock<Driven>) -> SqliteStore {
    let options = SqliteOptions::new().clock(clock.store.clone());
    options.open(directory.path().join("semel.db")).await.expect("the file opens")
}

impl<F: Front> OverSqlite<F> {
    async fn on(directory: TempDir, clock: TierClock<Driven>) -> Self {
        let store = open_sqlite(&directory, &clock).await;
        let tiered = tiered::<F, _>(Arc::new(store.clone()), clock.clone()).await;
        Self { tiered, store, directory, clock, front: std::marker::PhantomData }
    }
}

impl<F: Front> Subject for OverSqlite<F> {
    async fn fresh() -> Self {
        let clock = TierClock::of(Driven::default());
        clock.forward(Duration::from_secs(365 * 86_400));
        Self::on(TempDir::new().expect("a directory"), clock).await
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.tiered.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        let store = open_sqlite(&self.directory, &self.clock).await;
        Ok(Arc::new(tiered::<F, _>(Arc::new(store), self.clock.clone()).await))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        let Self { tiered, store, directory, clock, .. } = self;
        drop((tiered, store));
        Ok(Self::on(directory, clock).await)
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.clock.clone()))
    }
}

struct OverPostgres {
    tiered: Tiered,
    store: PgStore,
    database: Database,
    clock: TierClock<server_clock::Driven>,
}

async fn open_postgres(clock: &TierClock<server_clock::Driven>) -> PgStore {
    let options = PgOptions::new().clock(clock.store.clone());
    options.connect(&clock.store.server.url()).await.expect("the database opens")
}

impl OverPostgres {
    async fn on(database: Database, clock: TierClock<server_clock::Driven>) -> Self {
        let store = open_postgres(&clock).await;
        let tiered = tiered::<Honest, _>(Arc::new(store.clone()), clock.clone()).await;
        Self { tiered, store, database, clock }
    }
}

impl Subject for OverPostgres {
    async fn fresh() -> Self {
        let database = Database::new().await;
        let clock = TierClock::of(server_clock::Driven::of(&database).await);
        Self::on(database, clock).await
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.tiered.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        let store = open_postgres(&self.clock).await;
        Ok(Arc::new(tiered::<Honest, _>(Arc::new(store), self.clock.clone()).await))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        let Self { tiered, store, database, clock } = self;
        store.close().await;
        drop(tiered);
        Ok(Self::on(database, clock).await)
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.clock.clone()))
    }
}

mod sqlite {
    use super::*;

    semel_conformance::suite!(OverSqlite<Honest>);
}

mod postgres {
    use super::*;

    semel_conformance::suite!(OverPostgres);
}

mod lies {
    use super::*;

    semel_conformance::suite!(OverSqlite<Lying>);
}
