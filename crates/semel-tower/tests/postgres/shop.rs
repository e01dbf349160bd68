//! A shop on PostgreSQL: the layer before its routes goes straight to the server, its handlers by way of a proxy that can cut them off.

use axum::Router;
use semel::{Engine, EngineOptions, Filter, Policy, Record, Stale, Store as _};
use semel_postgres::PgStore;
use semel_testing::database::Database;
use semel_testing::database::Proxy;
use semel_testing::http::Server;
use semel_testing::http::once::{Answer, Ask, KEY};
use semel_tower::{IdempotencyLayer, Protection};
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, Row as _, raw_sql};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Shop {
    pub(crate) server: Server,
    pub(crate) engine: Engine,
    pub(crate) store: PgStore,
    /// Straight to the server.
    pub(crate) db: PgPool,
    pub(crate) proxy: Proxy,
    _database: Database,
}

/// What handlers have.
pub(crate) struct Means {
    pub(crate) db: PgPool,
    pub(crate) store: PgStore,
}

impl Shop {
    pub(crate) async fn open(stale: Stale, routes: impl FnOnce(Means) -> Router) -> Self {
        let database = Database::new().await;
        let db = database.pool().await;
        let store = PgStore::new(db.clone()).await.unwrap();
        let table = "CREATE TABLE payments (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, charge text)";
        raw_sql(table).execute(&db).await.unwrap();
        let (proxy, by_proxy) = Proxy::before(database.options()).await;
        let by_proxy = PgPoolOptions::new().max_connections(10).connect_with(by_proxy).await.unwrap();
        let means = Means { store: PgStore::new(by_proxy.clone()).await.unwrap(), db: by_proxy };
        // Longer than any machine is busy.
        let options = EngineOptions { store_timeout: Duration::from_secs(8), ..EngineOptions::default() };
        let engine = Engine::with_options(Arc::new(store.clone()), options);
        let policy = Arc::new(Policy { stale, ..Policy::default() });
        let protection = Protection { policy, ..Protection::default() };
        let layer = IdempotencyLayer::with_engine(engine.clone()).protect_writes(protection).unwrap();
        let server = Server::start(routes(means).layer(layer)).await;
        Self { server, engine, store, db, proxy, _database: database }
    }

    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        ask.send(&self.server).await
    }

    pub(crate) async fn number(&self, sql: &'static str) -> i64 {
        raw_sql(sql).fetch_one(&self.db).await.unwrap().get(0)
    }

    pub(crate) async fn payments(&self) -> i64 {
        self.number("SELECT count(*) FROM payments").await
    }

    /// Rows that were written by the transaction that wrote the record as it is.
    pub(crate) async fn written_with_the_record(&self) -> i64 {
        self.number("SELECT count(*) FROM payments p, semel_records r WHERE p.xmin = r.xmin").await
    }

    /// Every owner has given no sign of life for too long.
    pub(crate) async fn leases_are_over(&self) {
        raw_sql("UPDATE semel_records SET lease_until = 0").execute(&self.db).await.unwrap();
    }

    /// From now on no record can be completed; or it can again.
    pub(crate) async fn completing_fails(&self, fails: bool) {
        let sql = if fails {
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'as told'; END $$;
             CREATE TRIGGER broken BEFORE UPDATE ON semel_records FOR EACH ROW WHEN (NEW.state = 'completed')
             EXECUTE FUNCTION broken()"
        } else {
            "DROP TRIGGER broken ON semel_records"
        };
        raw_sql(sql).execute(&self.db).await.unwrap();
    }

    pub(crate) async fn record(&self) -> Record {
        let mut page = self.store.list(Filter::default(), None, 10).await.unwrap();
        assert_eq!(page.records.len(), 1);
        page.records.remove(0)
    }
}

pub(crate) fn ask(mode: &str) -> Ask {
    Ask::new("POST", "/payments").key(KEY).json(r#"{"amount":"10.00"}"#).header("x-mode", mode)
}
