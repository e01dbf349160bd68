//! A file that is filled without syncing, and opened as ever afterwards.

use crate::kept::{Failure, Kept, Made, Pattern, TOMBSTONE, insertion};
use rusqlite::{Connection, params};
use semel::Store;
use semel::columns::KeyHash;
use semel_sqlite::SqliteStore;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

pub(crate) struct File {
    path: PathBuf,
    runtime: Handle,
    filling: Option<Filling>,
}

/// While it is being filled.
struct Filling {
    conn: Connection,
    insert: String,
    insert_answer: String,
    /// Records since the last commit.
    uncommitted: usize,
}

/// Records in a commit. Keys are random, so each commit writes most pages of their index: the more are in one, the less is written.
const COMMIT: usize = 1_000_000;

impl File {
    pub(crate) fn new(path: PathBuf, runtime: Handle) -> Self {
        Self { path, runtime, filling: None }
    }

    /// Only a file that nobody else has open can be written without a log; those who had it are closing it.
    fn until_others_have_closed(&self, conn: &Connection) -> Result<(), Failure> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match conn.execute_batch("PRAGMA journal_mode = OFF") {
                Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(format!("{} is still in use: {error}", self.path.display()).into()),
                Ok(()) => return Ok(()),
            }
        }
    }
}

impl Kept for File {
    fn url(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn begin(&mut self) -> Result<Pattern, Failure> {
        let conn = Connection::open(&self.path)?;
        self.until_others_have_closed(&conn)?;
        // Whatever a crash loses is built again. The cache holds the index that is written at random places.
        conn.execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA cache_size = -1500000; PRAGMA temp_store = MEMORY;
             CREATE TEMP TABLE pattern AS SELECT * FROM semel_records ORDER BY id LIMIT 1;
             CREATE TEMP TABLE answer AS SELECT semel_answers.* FROM semel_answers JOIN pattern USING (operation_id)",
        )?;
        let names = conn
            .prepare("SELECT name FROM pragma_table_info('semel_records')")?
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        let (columns, values) = insertion(&names, ["?1", "?2", "?3", "?4", "?5"]);
        let pattern = conn.query_row("SELECT tenant, operation, created_at FROM pattern", [], |row| {
            Ok(Pattern { tenant: row.get(0)?, operation: row.get(1)?, created_at: row.get(2)? })
        })?;
        let insert = format!("INSERT INTO semel_records ({columns}) SELECT {values} FROM temp.pattern p");
        let insert_answer = "INSERT INTO semel_answers (ends_at, operation_id, headers, body)
            SELECT p.ends_at + ?2, ?1, p.headers, p.body FROM temp.answer p"
            .to_owned();
        conn.execute_batch("BEGIN")?;
        self.filling = Some(Filling { conn, insert, insert_answer, uncommitted: 0 });
        Ok(pattern)
    }

    fn add(&mut self, records: &[Made]) -> Result<(), Failure> {
        let Some(filling) = &mut self.filling else { return Err("filling was not begun".into()) };
        {
            let mut insert = filling.conn.prepare_cached(&filling.insert)?;
            let mut insert_answer = filling.conn.prepare_cached(&filling.insert_answer)?;
            for made in records {
                let (operation_id, owner) = (made.operation_id.as_bytes(), made.owner.as_bytes());
                insert.execute(params![made.hash, operation_id, made.key, owner, made.shift])?;
                insert_answer.execute(params![operation_id, made.shift])?;
            }
        }
        filling.uncommitted += records.len();
        if filling.uncommitted >= COMMIT {
            filling.conn.execute_batch("COMMIT; BEGIN")?;
            filling.uncommitted = 0;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        if let Some(filling) = self.filling.take() {
            filling.conn.execute_batch("COMMIT")?;
        }
        Ok(std::fs::File::open(&self.path)?.sync_all()?)
    }

    fn bytes_for_a_key(&mut self) -> Result<f64, Failure> {
        let conn = Connection::open(&self.path)?;
        let keys: i64 = conn.query_row("SELECT count(*) FROM semel_records", [], |row| row.get(0))?;
        Ok(std::fs::metadata(&self.path)?.len() as f64 / keys as f64)
    }

    fn ripen(&mut self, records: &[(KeyHash, i64)]) -> Result<(), Failure> {
        let mut conn = Connection::open(&self.path)?;
        let transaction = conn.transaction()?;
        for (hash, at) in records {
            transaction
                .prepare_cached(
                    "UPDATE semel_answers SET ends_at = ?2 WHERE (ends_at, operation_id) =
                     (SELECT coalesce(body_expires_at, expires_at), operation_id FROM semel_records WHERE key_hash = ?1)",
                )?
                .execute(params![hash, at])?;
            transaction
                .prepare_cached(
                    "UPDATE semel_records SET body_expires_at = NULL, expires_at = ?2, due_kind = 'purge',
                     due_at = ?2 + ?3, purge_at = ?2 + ?3 WHERE key_hash = ?1",
                )?
                .execute(params![hash, at, TOMBSTONE])?;
        }
        Ok(transaction.commit()?)
    }

    fn open(&self) -> Result<Arc<dyn Store>, Failure> {
        Ok(Arc::new(self.runtime.block_on(SqliteStore::open(&self.path))?))
    }
}
