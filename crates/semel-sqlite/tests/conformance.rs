//! The contract of all stores, on SQLite files.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by a panic")]

use semel::Store;
use semel_conformance::{Hands, Lacking, Subject};
use semel_sqlite::{Clock, SqliteOptions, SqliteStore};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

struct Sqlite {
    store: SqliteStore,
    directory: TempDir,
    clock: Driven,
}

/// Wall clock and monotonic clock, as times since their beginnings. All instances are on one machine and share them.
#[derive(Clone, Default)]
struct Driven(Arc<Mutex<(Duration, Duration)>>);

impl Clock for Driven {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000) + self.0.lock().unwrap().0
    }

    fn monotonic(&self) -> Duration {
        self.0.lock().unwrap().1
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

impl Hands for Driven {
    fn forward(&self, by: Duration) {
        let mut clocks = self.0.lock().unwrap();
        *clocks = (clocks.0 + by, clocks.1 + by);
    }

    fn jump(&self, by: Duration) {
        self.0.lock().unwrap().0 += by;
    }

    fn come_back(&self, by: Duration) {
        self.0.lock().unwrap().0 -= by;
    }

    fn back(&self, by: Duration) {
        let mut clocks = self.0.lock().unwrap();
        clocks.0 = clocks.0.saturating_sub(by);
    }
}

async fn open(directory: &TempDir, clock: &Driven) -> SqliteStore {
    let options = SqliteOptions::new().clock(clock.clone());
    options.open(directory.path().join("semel.db")).await.expect("the file opens")
}

impl Subject for Sqlite {
    async fn fresh() -> Self {
        let (directory, clock) = (TempDir::new().expect("a directory"), Driven::default());
        clock.forward(Duration::from_secs(365 * 86_400));
        Self { store: open(&directory, &clock).await, directory, clock }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Ok(Arc::new(open(&self.directory, &self.clock).await))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        let Self { store, directory, clock } = self;
        drop(store);
        Ok(Self { store: open(&directory, &clock).await, directory, clock })
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.clock.clone()))
    }
}

semel_conformance::suite!(Sqlite);
