//! The contract of all stores, on PostgreSQL: straight, and by way of PgBouncer in transaction mode.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod database;

use database::Database;
use semel::Store;
use semel_conformance::{Hands, Lacking, Subject};
use semel_postgres::{PgOptions, PgStore};
use std::sync::Arc;

const NO_HANDS: Lacking = Lacking("its time is that of a server that other tests use too");

mod straight {
    use super::*;

    struct Postgres {
        store: PgStore,
        database: Database,
    }

    async fn open(database: &Database) -> PgStore {
        PgStore::connect(&database.url()).await.expect("the database opens")
    }

    impl Subject for Postgres {
        async fn fresh() -> Self {
            let database = Database::without_records().await;
            Self { store: open(&database).await, database }
        }

        fn store(&self) -> Arc<dyn Store> {
            Arc::new(self.store.clone())
        }

        async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
            Ok(Arc::new(open(&self.database).await))
        }

        async fn reopened(self) -> Result<Self, Lacking> {
            self.store.close().await;
            Ok(Self { store: open(&self.database).await, database: self.database })
        }

        fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
            Err(NO_HANDS)
        }
    }

    semel_conformance::suite!(Postgres);
}

mod by_pgbouncer {
    use super::*;

    struct PgBouncer {
        store: PgStore,
        database: Database,
    }

    async fn open(database: &Database) -> PgStore {
        let options = PgOptions::new().without_prepared_statements();
        options.connect(&database.url_by_pgbouncer()).await.expect("the database opens")
    }

    impl Subject for PgBouncer {
        async fn fresh() -> Self {
            let database = Database::without_records().await;
            Self { store: open(&database).await, database }
        }

        fn store(&self) -> Arc<dyn Store> {
            Arc::new(self.store.clone())
        }

        async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
            Ok(Arc::new(open(&self.database).await))
        }

        async fn reopened(self) -> Result<Self, Lacking> {
            self.store.close().await;
            Ok(Self { store: open(&self.database).await, database: self.database })
        }

        fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
            Err(NO_HANDS)
        }
    }

    semel_conformance::suite!(PgBouncer);
}
