//! A shop with one operation, whose payments are in the same database as its records.

use crate::fixture::{key, number, read};
use semel::fingerprint::{Command, Recipe};
use semel::{
    Body, Decision, Engine, EngineOptions, Incoming, Outcome, Policy, Record, Stale, StoredResponse, Ticket,
};
use semel_postgres::{PgOptions, PgStore};
use semel_testing::database::Database;
use semel_testing::database::Proxy;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{PgPool, raw_sql};
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Shop {
    pub(crate) store: PgStore,
    pub(crate) engine: Engine,
    /// Straight to the server, whatever stands before the store.
    pub(crate) db: PgPool,
    pub(crate) policy: Arc<Policy>,
    pub(crate) database: Database,
}

/// Longer than any machine is busy.
const PATIENT: Duration = Duration::from_secs(30);

impl Shop {
    pub(crate) async fn open(stale: Stale) -> Self {
        let database = Database::new().await;
        let options = database.options();
        Self::over(database, PgOptions::new(), options, stale).await
    }

    /// The way to the server leads through a proxy that can cut it off.
    pub(crate) async fn behind_a_proxy(stale: Stale) -> (Self, Proxy) {
        let database = Database::new().await;
        let (proxy, options) = Proxy::before(database.options()).await;
        (Self::over(database, PgOptions::new(), options, stale).await, proxy)
    }

    pub(crate) async fn behind_pgbouncer(stale: Stale) -> Self {
        let database = Database::new().await;
        // PgBouncer refuses a connection that asks for a setting which it does not know.
        let options = database.options_by_pgbouncer().extra_float_digits(None);
        Self::over(database, PgOptions::new().without_prepared_statements(), options, stale).await
    }

    async fn over(database: Database, options: PgOptions, way: PgConnectOptions, stale: Stale) -> Self {
        let pool = PgPoolOptions::new().max_connections(20).acquire_timeout(PATIENT);
        let store = options.open(pool.connect_with(way).await.unwrap()).await.unwrap();
        let db = database.pool().await;
        raw_sql("CREATE TABLE payments (id text PRIMARY KEY, amount bigint NOT NULL)")
            .execute(&db)
            .await
            .unwrap();
        let policy = Arc::new(Policy { stale, ..Policy::default() });
        Self { engine: engine(&store), store, db, policy, database }
    }

    /// The same shop in another process, which goes straight to the server.
    pub(crate) async fn elsewhere(self) -> Self {
        let store = PgStore::new(self.database.pool().await).await.unwrap();
        // It judges no lease over before a whole one has passed since its start.
        let lease = std::time::Duration::from_millis(50);
        let policy = Arc::new(Policy { lease, ..(*self.policy).clone() });
        tokio::time::sleep(lease).await;
        Self { engine: engine(&store), store, db: self.database.pool().await, policy, ..self }
    }

    pub(crate) fn incoming<'a>(&self, name: &str, command: &'a Command) -> Incoming<'a> {
        Incoming { key: key(name), subject: command, policy: Arc::clone(&self.policy) }
    }

    pub(crate) async fn execute(&self, name: &str) -> Ticket {
        match self.engine.begin(self.incoming(name, &command("10.00"))).await.unwrap() {
            Decision::Execute(ticket) => ticket,
            other => panic!("it was to execute, and got {other:?}"),
        }
    }

    pub(crate) async fn payments(&self) -> i64 {
        number(&self.db, "SELECT count(*) FROM payments").await
    }

    /// Every owner has given no sign of life for too long.
    pub(crate) async fn leases_are_over(&self) {
        raw_sql("UPDATE semel_records SET lease_until = 0").execute(&self.db).await.unwrap();
    }

    pub(crate) async fn record(&self, name: &str) -> Option<Record> {
        read(&self.store, name).await
    }

    pub(crate) async fn recovery_point(&self, name: &str) -> Option<String> {
        self.record(name).await.unwrap().recovery_point
    }
}

fn engine(store: &PgStore) -> Engine {
    let options = EngineOptions { store_timeout: PATIENT, ..EngineOptions::default() };
    Engine::with_options(Arc::new(store.clone()), options)
}

pub(crate) fn command(amount: &str) -> Command {
    let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
    Command::new(recipe, None, &amount).unwrap()
}

pub(crate) async fn pay(conn: &mut PgConnection, id: &str) -> Result<String, sqlx::Error> {
    let sql = "INSERT INTO payments (id, amount) VALUES ($1, 100)";
    // Not prepared by name, for some of the connections lead through PgBouncer.
    sqlx::query(sql).persistent(false).bind(id).execute(conn).await?;
    Ok(id.to_owned())
}

pub(crate) fn completed() -> Outcome {
    let body = Body::Stored(bytes::Bytes::from_static(b"paid"));
    let response = StoredResponse { status: 201, headers: vec![], body, schema_version: None };
    Outcome::Completed { response: Some(response), resource: None }
}

pub(crate) fn retryable() -> Outcome {
    Outcome::Retryable { error: "resumable".into() }
}
