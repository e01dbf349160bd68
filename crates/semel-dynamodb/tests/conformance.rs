//! The contract of all stores, on DynamoDB's interface: on dynoxide, or on the service that `SEMEL_TEST_DYNAMODB_URL` names.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod proxy;

use proxy::Table;
use semel::Store;
use semel_conformance::{Hands, Lacking, Subject};
use semel_dynamodb::DynamoStore;
use std::sync::Arc;

/// A store on a service whose clock the tests move.
struct Dynamo {
    store: DynamoStore,
    table: Table,
}

impl Subject for Dynamo {
    async fn fresh() -> Self {
        let table = Table::new().await;
        Self { store: table.open().await, table }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.store.clone())
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Ok(Arc::new(self.table.open().await))
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        let Self { store, table } = self;
        drop(store);
        Ok(Self { store: table.open().await, table })
    }

    fn respells(&self) -> Result<(), Lacking> {
        Err(Lacking(
            "a table keeps the key format that it was first used with: a transaction has room for a hundred items",
        ))
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.table.clock.clone()))
    }
}

semel_conformance::suite!(Dynamo);
