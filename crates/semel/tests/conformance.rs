//! The contract of all stores, on the one in memory.

use semel::{ManualClock, MemoryStore, Store, Timestamp};
use semel_conformance::{Hands, Lacking, Subject};
use std::sync::Arc;

struct Memory {
    store: MemoryStore,
    clock: ManualClock,
}

impl Subject for Memory {
    async fn fresh() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        Self { store: MemoryStore::with_clock(clock.clone()), clock }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        // All that another instance could be: the same maps behind another handle.
        Ok(Arc::new(self.store.clone()))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        Err(Lacking("a store in memory is not durable: there is nothing to open again"))
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.clock.clone()))
    }
}

semel_conformance::suite!(Memory);
