//! A database of its own for each test.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, raw_sql};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Database {
    pub(crate) url: String,
}

impl Database {
    /// Empty, without a table.
    pub(crate) async fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("SEMEL_TEST_POSTGRES_URL").expect(
            "these tests need a PostgreSQL server that they may do as they like with: run `cargo xtask test`, which starts one, or set SEMEL_TEST_POSTGRES_URL",
        );
        let name = format!("gateways_test_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let mut conn = PgConnection::connect(&server).await.unwrap();
        // A server that was named by the variable may have one left over from a process of the same number.
        for sql in
            [format!("DROP DATABASE IF EXISTS {name}"), format!("CREATE DATABASE {name} TEMPLATE template0")]
        {
            raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
        }
        let (before, settings) = server.split_once('?').unwrap_or((&server, ""));
        let base = before.rsplit_once('/').map_or(before, |(base, _)| base);
        Self { url: format!("{base}/{name}?{settings}") }
    }

    /// Where the server listens: host and port.
    pub(crate) fn authority(&self) -> &str {
        let rest = self.url.split("://").nth(1).unwrap();
        let place = rest.split('/').next().unwrap();
        place.rsplit_once('@').map_or(place, |(_, authority)| authority)
    }

    pub(crate) async fn execute(&self, sql: &str) -> u64 {
        let mut conn = PgConnection::connect(&self.url).await.unwrap();
        raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut conn).await.unwrap().rows_affected()
    }

    /// Everything in it, as text; bytes are in hexadecimal digits.
    pub(crate) async fn dump(&self) -> String {
        let mut conn = PgConnection::connect(&self.url).await.unwrap();
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
}
