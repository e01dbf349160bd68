//! A database for each test: real, empty, and its own.
//!
//! Databases are created on the shared [server](Server::Postgres) as they are needed, and used again by later tests of the same
//! process, emptied: creating one takes longer than most tests.

use crate::servers::Server;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgPool, Row as _, raw_sql};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

static FREE: Mutex<Vec<String>> = Mutex::new(Vec::new());
static MADE: AtomicU32 = AtomicU32::new(0);

/// An empty database.
pub struct Database {
    name: String,
}

fn address(server: Server) -> PgConnectOptions {
    PgConnectOptions::from_str(&server.url()).expect("the URL of a PostgreSQL server")
}

/// The URL of another database on the same server.
fn url_of(server: Server, database: &str) -> String {
    let url = server.url();
    let (before, settings) = url.split_once('?').unwrap_or((&url, ""));
    let base = before.rsplit_once('/').map_or(before, |(base, _)| base);
    format!("{base}/{database}?{settings}")
}

impl Database {
    /// Without any table.
    pub async fn new() -> Self {
        Self::with("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await
    }

    /// Without a record, but for tests that make no tables of their own: taking out the few rows of a test is faster by far.
    pub async fn without_records() -> Self {
        Self::with(
            "DO $$ BEGIN
               IF to_regclass('semel_records') IS NOT NULL THEN
                 DELETE FROM semel_records; DELETE FROM semel_answers; DELETE FROM semel_history;
                 DELETE FROM semel_remembered;
                 ALTER TABLE semel_records DROP CONSTRAINT IF EXISTS semel_records_key_format;
               END IF;
               IF to_regclass('semel_clock') IS NOT NULL THEN DELETE FROM semel_clock; END IF;
               IF to_regclass('semel_audit') IS NOT NULL THEN DELETE FROM semel_audit; END IF;
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

    pub fn options(&self) -> PgConnectOptions {
        address(Server::Postgres).database(&self.name)
    }

    /// By way of PgBouncer, in transaction mode.
    pub fn options_by_pgbouncer(&self) -> PgConnectOptions {
        address(Server::PgBouncer).database(&self.name)
    }

    pub fn url(&self) -> String {
        url_of(Server::Postgres, &self.name)
    }

    pub fn url_by_pgbouncer(&self) -> String {
        url_of(Server::PgBouncer, &self.name)
    }

    /// Its URL. No later test uses the database: what the URL is handed to may outlive the test.
    pub fn into_url(self) -> String {
        let url = self.url();
        std::mem::forget(self);
        url
    }

    /// Where the server listens: host and port.
    pub fn authority(&self) -> String {
        let url = self.url();
        let place =
            url.split("://").nth(1).and_then(|rest| rest.split('/').next()).expect("a URL names a host");
        place.rsplit_once('@').map_or(place, |(_, authority)| authority).to_owned()
    }

    /// Runs statements; how many rows they affected.
    pub async fn execute(&self, sql: &str) -> u64 {
        let mut conn = self.connection().await;
        raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await.unwrap().rows_affected()
    }

    /// Everything in it, as text; bytes are in hexadecimal digits.
    pub async fn dump(&self) -> String {
        let mut conn = self.connection().await;
        let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
        let tables = raw_sql(tables).fetch_all(&mut conn).await.unwrap();
        let mut dump = String::new();
        for table in tables {
            let table: String = table.get(0);
            let sql = format!("SELECT t::text FROM {table} t");
            for row in raw_sql(AssertSqlSafe(sql)).fetch_all(&mut conn).await.unwrap() {
                dump.push_str(&format!("{table} {}\n", row.get::<String, _>(0)));
            }
        }
        dump
    }

    pub async fn connection(&self) -> PgConnection {
        self.options().connect().await.expect("the server accepts a connection")
    }

    /// Connections of the application's own.
    pub async fn pool(&self) -> PgPool {
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
    let mut conn = address(Server::Postgres).connect().await.expect("the server accepts a connection");
    // A server that was named by the variable may have one left over from a process of the same number.
    let sql = format!("DROP DATABASE IF EXISTS {name}");
    raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.expect("an old database can be dropped");
    let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
    raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.expect("a database can be made");
    name
}
