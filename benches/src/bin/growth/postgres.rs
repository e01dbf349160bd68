//! A database that is filled without waiting for the disk, and opened as ever afterwards.

use crate::kept::{Failure, Kept, Made, Pattern, TOMBSTONE, insertion};
use semel::Store;
use semel::columns::KeyHash;
use semel_postgres::PgStore;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _, SqlSafeStr as _, SqlStr};
use std::sync::Arc;
use tokio::runtime::Handle;
use uuid::Uuid;

pub(crate) struct Database {
    url: String,
    runtime: Handle,
    /// While it is being filled, with the statements that do: for records, and for answers.
    filling: Option<(PgConnection, SqlStr, SqlStr)>,
}

impl Database {
    pub(crate) fn new(url: String, runtime: Handle) -> Self {
        Self { url, runtime, filling: None }
    }

    /// Runs statements one by one on a connection of their own.
    async fn run(&self, statements: &[&'static str]) -> Result<(), Failure> {
        let mut conn = PgConnection::connect(&self.url).await?;
        for statement in statements {
            conn.execute(*statement).await?;
        }
        Ok(conn.close().await?)
    }

    async fn pattern(&self) -> Result<(PgConnection, [SqlStr; 2], Pattern), Failure> {
        // Whole pages in the log are what filling an index at random places would mostly write.
        self.run(&["ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()"]).await?;
        let mut conn = PgConnection::connect(&self.url).await?;
        conn.execute("SET synchronous_commit = off").await?;
        conn.execute("CREATE TEMP TABLE pattern AS SELECT * FROM semel_records ORDER BY id LIMIT 1").await?;
        conn.execute(
            "CREATE TEMP TABLE answer AS SELECT s.* FROM semel_answers s JOIN pattern p USING (operation_id)",
        )
        .await?;
        let names = "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'semel_records' \
                     AND table_schema = current_schema() ORDER BY ordinal_position";
        let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut conn).await?;
        let parameters = ["m.hash", "m.operation_id", "m.key", "m.owner", "m.shift"];
        let (columns, values) = insertion(&names, parameters);
        let insert = format!(
            "INSERT INTO semel_records ({columns}) SELECT {values} FROM pattern p, \
             unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::int8[]) AS m (hash, operation_id, key, owner, shift)"
        );
        let insert_answers = "INSERT INTO semel_answers (ends_at, operation_id, headers, body) \
             SELECT p.ends_at + m.shift, m.operation_id, p.headers, p.body FROM answer p, \
             unnest($1::uuid[], $2::int8[]) AS m (operation_id, shift)"
            .to_owned();
        let row =
            sqlx::query("SELECT tenant, operation, created_at FROM pattern").fetch_one(&mut conn).await?;
        let pattern =
            Pattern { tenant: row.try_get(0)?, operation: row.try_get(1)?, created_at: row.try_get(2)? };
        Ok((conn, [insert, insert_answers].map(|sql| AssertSqlSafe(sql).into_sql_str()), pattern))
    }
}

impl Kept for Database {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn begin(&mut self) -> Result<Pattern, Failure> {
        let (conn, [insert, insert_answers], pattern) = self.runtime.block_on(self.pattern())?;
        self.filling = Some((conn, insert, insert_answers));
        Ok(pattern)
    }

    fn add(&mut self, records: &[Made]) -> Result<(), Failure> {
        let Some((conn, insert, insert_answers)) = &mut self.filling else {
            return Err("filling was not begun".into());
        };
        let uuids = |of: fn(&Made) -> Uuid| records.iter().map(of).collect::<Vec<_>>();
        let query = sqlx::query(insert.clone())
            .bind(uuids(|made| Uuid::from_bytes(made.hash)))
            .bind(uuids(|made| made.operation_id))
            .bind(records.iter().map(|made| made.key.as_str()).collect::<Vec<_>>())
            .bind(uuids(|made| made.owner))
            .bind(records.iter().map(|made| made.shift).collect::<Vec<_>>());
        self.runtime.block_on(query.execute(&mut *conn))?;
        let query = sqlx::query(insert_answers.clone())
            .bind(uuids(|made| made.operation_id))
            .bind(records.iter().map(|made| made.shift).collect::<Vec<_>>());
        self.runtime.block_on(query.execute(conn))?;
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.filling = None;
        self.runtime.block_on(self.run(&[
            "ALTER SYSTEM RESET full_page_writes",
            "SELECT pg_reload_conf()",
            "VACUUM (ANALYZE) semel_records",
            "VACUUM (ANALYZE) semel_answers",
            "CHECKPOINT",
        ]))
    }

    fn bytes_for_a_key(&mut self) -> Result<f64, Failure> {
        self.runtime.block_on(async {
            let mut conn = PgConnection::connect(&self.url).await?;
            let bytes = "SELECT pg_database_size(current_database())::float8 / count(*) FROM semel_records";
            Ok(sqlx::query_scalar(bytes).fetch_one(&mut conn).await?)
        })
    }

    fn ripen(&mut self, records: &[(KeyHash, i64)]) -> Result<(), Failure> {
        self.runtime.block_on(async {
            let mut conn = PgConnection::connect(&self.url).await?;
            for some in records.chunks(10_000) {
                // Both see the records as they are before: the answers are found by the times that these still have.
                let sql = "WITH answers AS (UPDATE semel_answers s SET ends_at = m.at \
                           FROM unnest($1::uuid[], $2::int8[]) AS m (hash, at) \
                           JOIN semel_records r ON r.key_hash = m.hash \
                           WHERE s.ends_at = coalesce(r.body_expires_at, r.expires_at) AND s.operation_id = r.operation_id) \
                           UPDATE semel_records r SET body_expires_at = NULL, expires_at = m.at, due_kind = 'purge', \
                           due_at = m.at + $3, purge_at = m.at + $3 FROM unnest($1::uuid[], $2::int8[]) AS m (hash, at) \
                           WHERE r.key_hash = m.hash";
                sqlx::query(sql)
                    .bind(some.iter().map(|(hash, _)| Uuid::from_bytes(*hash)).collect::<Vec<_>>())
                    .bind(some.iter().map(|(_, at)| *at).collect::<Vec<_>>())
                    .bind(TOMBSTONE)
                    .execute(&mut conn)
                    .await?;
            }
            Ok(conn.close().await?)
        })
    }

    fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(self.runtime.block_on(PgStore::connect(&self.url))?))
    }
}
