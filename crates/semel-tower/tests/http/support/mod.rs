//! A shop with a till behind the layer, and clients that speak to it over sockets.

pub(crate) mod logs;

pub(crate) use semel_testing::http::once::{Answer, Ask, KEY};
pub(crate) use semel_testing::http::{Server, Till};
pub(crate) use semel_testing::store::{Call, Fault, FaultyStore, Gate};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use semel::{Engine, EngineOptions, Filter, Record, Store as _};
use semel_sqlite::{Clock, SqliteOptions, SqliteStore};
use semel_tower::{IdempotencyLayer, Protection};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// How long a call to the store may take where nothing is to fail: longer than any machine is busy.
const PATIENT: Duration = Duration::from_secs(8);

/// How long it may take where it is to be found out that the store does not answer.
const IMPATIENT: Duration = Duration::from_secs(1);

/// A shop: its till, the layer in front of it, and the file behind.
pub(crate) struct Shop {
    pub(crate) server: Server,
    pub(crate) till: Arc<Till>,
    pub(crate) engine: Engine,
    /// The store as the layer sees it.
    pub(crate) store: FaultyStore,
    /// The store as it is.
    pub(crate) sqlite: SqliteStore,
    pub(crate) clock: ShopClock,
    departures: Arc<Departures>,
    directory: tempfile::TempDir,
}

/// Requests that the server has let go of.
struct Departures {
    answered: Semaphore,
    abandoned: Semaphore,
}

/// Tells, when it is dropped, how a request left.
struct Departure {
    departures: Arc<Departures>,
    answered: bool,
}

impl Departure {
    fn is_answered(&mut self) {
        self.answered = true;
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        let departures = &self.departures;
        if self.answered { &departures.answered } else { &departures.abandoned }.add_permits(1);
    }
}

impl Shop {
    /// A shop with the layer as it stands.
    pub(crate) async fn open() -> Self {
        Self::layered(|layer| layer).await
    }

    /// A shop that protects its writes like this.
    pub(crate) async fn protected(protection: Protection) -> Self {
        Self::layered(|layer| layer.protect_writes(protection).unwrap()).await
    }

    /// A shop with this layer.
    pub(crate) async fn layered(layer: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        Self::built(layer, |_| Router::new()).await
    }

    /// A shop that does not wait long for its store.
    pub(crate) async fn impatient() -> Self {
        Self::with(IMPATIENT, SqliteOptions::new(), |layer| layer, |_| Router::new()).await
    }

    /// A shop with more routes that does not wait long for its store, on a file that is opened like this.
    pub(crate) async fn impatient_on(
        options: SqliteOptions,
        more: impl FnOnce(&SqliteStore) -> Router,
    ) -> Self {
        Self::with(IMPATIENT, options, |layer| layer, more).await
    }

    /// A shop with this layer and more routes.
    pub(crate) async fn built(
        layer: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
        more: impl FnOnce(&SqliteStore) -> Router,
    ) -> Self {
        Self::with(PATIENT, SqliteOptions::new(), layer, more).await
    }

    async fn with(
        store_timeout: Duration,
        options: SqliteOptions,
        layer: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
        more: impl FnOnce(&SqliteStore) -> Router,
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ShopClock::default();
        let options = options.busy_timeout(store_timeout / 3).clock(clock.clone());
        let sqlite = options.open(directory.path().join("semel.db")).await.unwrap();
        let store = FaultyStore::over(sqlite.clone());
        let engine_options = EngineOptions { store_timeout, ..EngineOptions::default() };
        let engine = Engine::with_options(Arc::new(store.clone()), engine_options);
        let layer = layer(IdempotencyLayer::with_engine(engine.clone()));
        let till = Arc::new(Till::default());
        let departures = Arc::new(Departures { answered: Semaphore::new(0), abandoned: Semaphore::new(0) });
        let router = till.clone().router().merge(more(&sqlite)).layer(layer).layer(from_fn({
            let departures = Arc::clone(&departures);
            move |request: Request, next: Next| {
                let mut departure = Departure { departures: Arc::clone(&departures), answered: false };
                async move {
                    let response = next.run(request).await;
                    departure.is_answered();
                    response
                }
            }
        }));
        let server = Server::start(router).await;
        Self { server, till, engine, store, sqlite, clock, departures, directory }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("semel.db")
    }

    /// Another connection to the file, as another process would have it.
    pub(crate) fn connection(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.file()).unwrap();
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        connection
    }

    /// All records, with their answers.
    pub(crate) async fn records(&self) -> Vec<Record> {
        let page = self.sqlite.list(Filter::default(), None, 1000).await.unwrap();
        let ids = page.records.iter().map(|record| record.operation_id).collect();
        self.sqlite.find(ids).await.unwrap().items.into_iter().flatten().collect()
    }

    /// The one record that there is.
    pub(crate) async fn record(&self) -> Record {
        let mut records = self.records().await;
        assert_eq!(records.len(), 1);
        records.remove(0)
    }

    /// Hangs up, and waits until the server has noticed and dropped the request.
    pub(crate) async fn hang_up(&self, line: TcpStream) {
        drop(line);
        self.departures.abandoned.acquire().await.unwrap().forget();
    }

    /// Hangs up, and waits until the server is done with the request in one way or the other.
    pub(crate) async fn hang_up_early(&self, line: TcpStream) {
        drop(line);
        tokio::select! {
            permit = self.departures.abandoned.acquire() => permit.unwrap().forget(),
            permit = self.departures.answered.acquire() => permit.unwrap().forget(),
        }
    }

    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        ask.send(&self.server).await
    }
}

/// A clock that goes on only when a test lets it.
#[derive(Clone)]
pub(crate) struct ShopClock {
    start: SystemTime,
    passed: Arc<AtomicU64>,
}

impl Default for ShopClock {
    fn default() -> Self {
        Self { start: SystemTime::now(), passed: Arc::default() }
    }
}

impl ShopClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.passed.fetch_add(by.as_millis().try_into().unwrap(), Ordering::SeqCst);
    }
}

impl Clock for ShopClock {
    fn wall(&self) -> SystemTime {
        self.start + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.passed.load(Ordering::SeqCst))
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        Some(true)
    }
}
