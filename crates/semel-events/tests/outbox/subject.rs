//! An outbox under test, in either store.

use semel::Store;
use semel_events::message::Event;
use semel_events::outbox::postgres::PgOutbox;
use semel_events::outbox::sqlite::SqliteOutbox;
use semel_events::outbox::{EntryFilter, OutboxAdmin, Publisher, PublisherOptions, Queue};
use semel_events::outbox::{postgres, sqlite};
use semel_events::sink::Sink;
use semel_postgres::PgStore;
use semel_sqlite::{SqliteOptions, SqliteStore};
use semel_testing::database::Database;
use sqlx::PgPool;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) enum Subject {
    Sqlite {
        store: SqliteStore,
        _directory: Arc<tempfile::TempDir>,
    },
    /// With connections of the application's own, which wait for each other as long as it takes.
    Postgres {
        store: PgStore,
        db: PgPool,
        database: Arc<Database>,
    },
}

impl Subject {
    pub(crate) async fn sqlite() -> Self {
        let directory = Arc::new(tempfile::tempdir().unwrap());
        let path = directory.path().join("semel.db");
        // What is on disk is tested elsewhere; here nothing crashes but publishers.
        let store = SqliteOptions::new().dangerously_without_fsync().open(path).await.unwrap();
        Self::Sqlite { store, _directory: directory }
    }

    pub(crate) async fn postgres() -> Self {
        let database = Arc::new(Database::without_records().await);
        let store = PgStore::connect(&database.url()).await.unwrap();
        Self::Postgres { store, db: database.pool().await, database }
    }

    pub(crate) fn queue(&self) -> Arc<dyn Queue> {
        match self {
            Self::Sqlite { store, .. } => Arc::new(SqliteOutbox::of(store)),
            Self::Postgres { store, .. } => Arc::new(PgOutbox::of(store)),
        }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        match self {
            Self::Sqlite { store, .. } => store,
            Self::Postgres { store, .. } => store,
        }
    }

    pub(crate) fn desk(&self) -> Arc<dyn OutboxAdmin> {
        match self {
            Self::Sqlite { store, .. } => Arc::new(SqliteOutbox::of(store)),
            Self::Postgres { store, .. } => Arc::new(PgOutbox::of(store)),
        }
    }

    /// Appends in one transaction; what went wrong, in words.
    pub(crate) async fn try_append(&self, events: Vec<Event>, commit: bool) -> Result<(), String> {
        match self {
            Self::Sqlite { store, .. } => store
                .transaction(move |tx| {
                    sqlite::append(tx, &events).map_err(|error| error.to_string())?;
                    if commit { Ok(()) } else { Err("rolled back".to_owned()) }
                })
                .await
                .map_err(|error| match error {
                    semel_sqlite::TransactionError::Application(error) => error,
                    other => other.to_string(),
                }),
            Self::Postgres { db, .. } => {
                let mut tx = db.begin().await.unwrap();
                postgres::append_all(&mut tx, &events).await.map_err(|error| error.to_string())?;
                if commit {
                    tx.commit().await.map_err(|error| error.to_string())
                } else {
                    tx.rollback().await.unwrap();
                    Err("rolled back".to_owned())
                }
            }
        }
    }

    pub(crate) async fn append(&self, events: Vec<Event>) {
        self.try_append(events, true).await.unwrap();
    }

    /// Starts a publisher.
    pub(crate) fn publish<S: Sink>(&self, sink: S) -> Running {
        Running::start(self.publisher(sink))
    }

    pub(crate) fn publisher<S: Sink>(&self, sink: S) -> Publisher<S> {
        Publisher::new(self.queue(), sink, hasty())
    }

    /// How many events are left.
    pub(crate) async fn left(&self) -> usize {
        let page = self.desk().list(EntryFilter::default(), None, 100_000).await.unwrap();
        page.entries.len()
    }

    /// Waits until no more than so many events are left.
    pub(crate) async fn until_left(&self, most: usize) {
        until(async || self.left().await <= most).await;
    }

    /// Waits until there are so many dead letters.
    pub(crate) async fn until_dead_letters(&self, count: u64) {
        until(async || self.desk().stats().await.unwrap().dead_letters == count).await;
    }
}

/// Waits for what has to happen.
pub(crate) async fn until(mut happened: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !happened().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it happens");
}

/// Retries at once, and shares with others at once.
pub(crate) fn hasty() -> PublisherOptions {
    PublisherOptions {
        renew_every: Duration::from_millis(20),
        poll_every: Duration::from_millis(10),
        attempts: 3,
        retry_every: Duration::from_millis(1),
        ..PublisherOptions::default()
    }
}

/// A publisher at work.
pub(crate) struct Running {
    task: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Running {
    pub(crate) fn start<S: Sink>(publisher: Publisher<S>) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        Self { task: tokio::spawn(publisher.run(async move { drop(stopped.await) })), stop }
    }

    /// As a process that ends when it is told to.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        tokio::time::timeout(PATIENCE, self.task).await.expect("it stops").unwrap();
    }

    /// As a process that is killed.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }
}

/// The events of an aggregate, numbered.
pub(crate) fn numbered(aggregate: &str, numbers: std::ops::Range<u32>) -> Vec<Event> {
    numbers.map(|number| Event::json(aggregate, "Numbered", number.to_string())).collect()
}
