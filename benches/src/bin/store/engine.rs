//! Our side: whole operations through the engine.

use semel::Engine;
use semel_benches::operations::{Measured, Operations};
use semel_sqlite::SqliteStore;
use std::path::Path;
use std::time::Duration;

pub(crate) struct Side {
    operations: Operations,
    store: SqliteStore,
}

impl Side {
    pub(crate) async fn open(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let store = SqliteStore::open(path).await?;
        Ok(Self { operations: Operations::through(Engine::new(store.clone()))?, store })
    }

    /// What came of it, and how many items there were to a commit.
    pub(crate) async fn run(&self, callers: usize, span: Duration) -> (Measured, usize) {
        let before = self.store.stats();
        let measured = self.operations.run(callers, span).await;
        let after = self.store.stats();
        let (commits, items) = (after.commits - before.commits, after.items - before.items);
        (measured, (items / commits.max(1)).max(2) as usize)
    }
}
