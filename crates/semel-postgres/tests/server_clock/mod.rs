//! A server's clock that a test can move.
//!
//! Statements ask for `clock_timestamp()`. Connections to [`ServerClock::url`] look that up in a schema of ours before the server's own.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use semel::clock::Clock;
use semel_postgres::PgStore;
use semel_testing::database::Database;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, raw_sql};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Half a millisecond more than it stands at: what is computed with floats is rounded down.
const FUNCTION: &str = "
DROP SCHEMA IF EXISTS shifted CASCADE;
CREATE SCHEMA shifted;
CREATE TABLE shifted.hands (stopped_at bigint, ahead bigint NOT NULL);
INSERT INTO shifted.hands VALUES (NULL, 0);
CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(pg_catalog.to_timestamp((stopped_at + ahead + 0.5) / 1000.0),
                  pg_catalog.clock_timestamp() + ahead * interval '1 millisecond') FROM shifted.hands $$";

/// The clock of one database.
#[derive(Clone)]
pub(crate) struct ServerClock {
    options: PgConnectOptions,
    url: String,
}

impl ServerClock {
    /// It says what the server's clock says, until it is moved.
    pub(crate) async fn of(database: &Database) -> Self {
        // Before the path is another one: tables are made in the first schema of it.
        PgStore::migrate(&database.pool().await).await.expect("the tables can be made");
        let mut conn = database.connection().await;
        raw_sql(FUNCTION).execute(&mut conn).await.expect("a function can be made");
        let url = database.url();
        let mark = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{mark}options[search_path]=shifted,pg_catalog,public");
        Self { options: database.options(), url }
    }

    /// Where the server is reached so that its clock is this one.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Has the clock jump, ahead or back.
    pub(crate) async fn jump(&self, millis: i64) {
        self.run(format!("UPDATE shifted.hands SET ahead = ahead + {millis}")).await;
    }

    /// Stops the clock: from now on it moves by [`jump`](Self::jump) alone.
    pub(crate) async fn stop_at(&self, millis: i64) {
        self.run(format!("UPDATE shifted.hands SET stopped_at = {millis}, ahead = 0")).await;
    }

    /// As [`jump`](Self::jump), for whoever cannot wait.
    pub(crate) fn jump_blocking(&self, by: Duration, back: bool) {
        let millis = i64::try_from(by.as_millis()).expect("tests move a clock by years at most");
        let (this, millis) = (self.clone(), if back { -millis } else { millis });
        let moving = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(this.jump(millis));
        });
        moving.join().expect("the clock can be moved");
    }

    async fn run(&self, sql: String) {
        let mut conn: PgConnection = self.options.connect().await.expect("the server accepts a connection");
        raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.expect("the clock can be moved");
        conn.close().await.expect("the connection closes");
    }
}

/// The server's clock and the steady clock of all instances, moved together but for jumps.
#[derive(Clone)]
pub(crate) struct Driven {
    pub(crate) server: ServerClock,
    steady: Arc<Mutex<Duration>>,
}

impl Driven {
    /// Both stand still until they are moved.
    pub(crate) async fn of(database: &Database) -> Self {
        let server = ServerClock::of(database).await;
        server.stop_at(1_800_000_000_000).await;
        Self { server, steady: Arc::new(Mutex::new(Duration::from_secs(86_400))) }
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, by: Duration) {
        self.server.jump_blocking(by, false);
        self.leap(by);
    }

    /// Has the steady clock alone leap ahead.
    pub(crate) fn leap(&self, by: Duration) {
        *self.steady.lock().expect("nobody panics with it") += by;
    }

    /// The same server, and a steady clock of its own.
    pub(crate) fn another(&self) -> Self {
        Self { server: self.server.clone(), steady: Arc::new(Mutex::new(self.monotonic())) }
    }
}

impl Clock for Driven {
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    fn monotonic(&self) -> Duration {
        *self.steady.lock().expect("nobody panics with it")
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}
