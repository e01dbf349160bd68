//! A database for each test: real, empty, and its own.
//!
//! `cargo xtask test` starts a private server and tells its address in `SEMEL_TEST_POSTGRES_URL`. Databases are made on it as
//! they are needed, and used again by later tests of the same process, emptied: making one takes longer than most tests.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgPool, raw_sql};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());
static MADE: AtomicU32 = AtomicU32::new(0);

/// An empty database.
pub(crate) struct Database {
    name: String,
}

fn address(variable: &str) -> PgConnectOptions {
    let Ok(url) = std::env::var(variable) else {
        panic!(
            "these tests need a PostgreSQL server that they may do as they like with: run `cargo xtask test`, which \
             starts one, or set {variable}"
        );
    };
    PgConnectOptions::from_str(&url).expect("the variable holds a URL of PostgreSQL")
}

impl Database {
    /// Without any table.
    pub(crate) async fn new() -> Self {
        Self::with("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await
    }

    /// Without a record, but for tests that make no tables of their own: taking out the few rows of a test is faster by far.
    pub(crate) async fn without_records() -> Self {
        Self::with(
            "DO $$ BEGIN
               IF to_regclass('semel_records') IS NOT NULL THEN
                 DELETE FROM semel_records; DELETE FROM semel_answers; DELETE FROM semel_history;
                 DELETE FROM semel_remembered;
                 ALTER TABLE semel_records DROP CONSTRAINT IF EXISTS semel_records_key_format;
               END IF;
               IF to_regclass('semel_outbox') IS NOT NULL THEN
                 DELETE FROM semel_outbox; DELETE FROM semel_outbox_publishers; DELETE FROM semel_outbox_dropped;
                 UPDATE semel_outbox_lanes SET owner = NULL, lease_until = 0;
                 DELETE FROM semel_inbox; DELETE FROM semel_inbox_effects;
               END IF;
             END $$",
        )
        .await
    }

    async fn with(emptying: &'static str) -> Self {
        let free = FREE.lock().unwrap().pop();
        let name = match free {
            Some(name) => name,
            None => make().await,
        };
        let database = Self { name };
        let mut conn = database.connection().await;
        // Whatever an earlier test cut off midway ends before this one begins.
        let ending = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
        raw_sql(ending).execute(&mut conn).await.expect("old connections can be ended");
        raw_sql(emptying).execute(&mut conn).await.expect("the database can be emptied");
        conn.close().await.expect("the connection closes");
        database
    }

    pub(crate) fn options(&self) -> PgConnectOptions {
        address("SEMEL_TEST_POSTGRES_URL").database(&self.name)
    }

    /// By way of PgBouncer, in transaction mode.
    pub(crate) fn options_by_pgbouncer(&self) -> PgConnectOptions {
        address("SEMEL_TEST_PGBOUNCER_URL").database(&self.name)
    }

    pub(crate) fn url(&self) -> String {
        self.options().to_url_lossy().to_string()
    }

    pub(crate) fn url_by_pgbouncer(&self) -> String {
        self.options_by_pgbouncer().to_url_lossy().to_string()
    }

    pub(crate) async fn connection(&self) -> PgConnection {
        self.options().connect().await.expect("the server accepts a connection")
    }

    /// Connections of the application's own.
    pub(crate) async fn pool(&self) -> PgPool {
        let options = PgPoolOptions::new().max_connections(10).test_before_acquire(false);
        options.connect_with(self.options()).await.expect("the server accepts a connection")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        FREE.lock().unwrap().push(std::mem::take(&mut self.name));
    }
}

async fn make() -> String {
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("semel_test_{}_{number}", std::process::id());
    let mut conn =
        address("SEMEL_TEST_POSTGRES_URL").connect().await.expect("the server accepts a connection");
    // A server that was named by the variable may have one left over from a process of the same number.
    let sql = format!("DROP DATABASE IF EXISTS {name}");
    raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.expect("an old database can be dropped");
    let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
    raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.expect("a database can be made");
    name
}
