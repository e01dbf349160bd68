//! docs/guides/writing-a-store.md

use semel::MemoryStore as MyStore;
use semel::Store;
use semel_conformance::{Hands, Lacking, Subject};
use std::sync::Arc;

struct Mine {
    store: Arc<MyStore>,
}

impl Subject for Mine {
    async fn fresh() -> Self {
        Self { store: Arc::new(MyStore::new()) } // without a record
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Err(Lacking("its data is in one process")) // else: another pool, never a clone
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        Err(Lacking("it is not durable"))
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Err(Lacking("its clock cannot be moved"))
    }
}

semel_conformance::suite!(Mine);
