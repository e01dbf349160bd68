//! The other side: what SQLite does with the same statements and nothing around them.

use rusqlite::{Connection, params};
use semel_sqlite::SqliteStore;
use semel_sqlite::sql::{CLOCK, CREATE, KEEP_ANSWER, SET_CLOCK, SWAP};
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

pub(crate) struct Side {
    conn: Connection,
}

/// A row as both statements write it; what differs between the two is given beside.
struct Row {
    key_hash: [u8; 16],
    operation_id: [u8; 16],
    key: String,
    owner: [u8; 16],
    fingerprint: [u8; 32],
}

impl Row {
    fn new() -> Self {
        Self {
            key_hash: *Uuid::new_v4().as_bytes(),
            operation_id: *Uuid::now_v7().as_bytes(),
            key: Uuid::new_v4().to_string(),
            owner: *Uuid::new_v4().as_bytes(),
            fingerprint: [7; 32],
        }
    }
}

const NOW: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 60 * 60 * 1000;
const HEADERS: &str = r#"[["content-type","application/json"]]"#;

impl Side {
    /// Opens a file with the store's own schema and settings.
    pub(crate) fn open(
        runtime: &tokio::runtime::Runtime,
        path: &Path,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        // The store makes the schema; after it is closed the file is a plain SQLite file.
        runtime.block_on(async {
            SqliteStore::open(path).await?.close().await;
            Ok::<_, Box<dyn std::error::Error>>(())
        })?;
        let conn = Connection::open(path)?;
        conn.pragma_update(None, "journal_mode", "WAL")?;
        conn.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self { conn })
    }

    /// Pairs per second in transactions of `items` statements, half of them creating and half completing.
    pub(crate) fn run(&mut self, items: usize, span: Duration) -> rusqlite::Result<f64> {
        let half = (items / 2).max(1);
        let mut made: Vec<Row> = Vec::new();
        let (mut pairs, mut working) = (0, Duration::ZERO);
        while working < span {
            let rows: Vec<Row> = (0..half).map(|_| Row::new()).collect();
            let begun = Instant::now();
            self.transaction(&rows, &made)?;
            working += begun.elapsed();
            pairs += made.len();
            made = rows;
        }
        self.transaction(&[], &made)?;
        Ok(pairs as f64 / working.as_secs_f64())
    }

    /// How long two commits in a row took each time, one that creates and one that completes, in microseconds.
    pub(crate) fn run_alone(&mut self, span: Duration) -> rusqlite::Result<Vec<f64>> {
        let begun = Instant::now();
        let mut micros = Vec::new();
        while begun.elapsed() < span {
            let rows = [Row::new()];
            let pair = Instant::now();
            self.transaction(&rows, &[])?;
            self.transaction(&[], &rows)?;
            micros.push(pair.elapsed().as_secs_f64() * 1e6);
        }
        Ok(micros)
    }

    fn transaction(&mut self, create: &[Row], complete: &[Row]) -> rusqlite::Result<()> {
        let conn = &self.conn;
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let _now: i64 = conn.prepare_cached(CLOCK)?.query_row([], |row| row.get(0))?;
        for row in create {
            write(conn, CREATE, &row.key_hash, row, false)?;
        }
        for row in complete {
            write(conn, SWAP, &1_i64, row, true)?;
            let kept = params![NOW + DAY, row.operation_id, HEADERS, [b'x'; 200]];
            conn.prepare_cached(KEEP_ANSWER)?.execute(kept)?;
        }
        conn.prepare_cached(SET_CLOCK)?.execute([NOW, 0, 0, 1])?;
        conn.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

fn write(
    conn: &Connection,
    sql: &str,
    first: &dyn rusqlite::ToSql,
    row: &Row,
    done: bool,
) -> rusqlite::Result<()> {
    let changed = conn.prepare_cached(sql)?.execute(params![
        first,
        row.operation_id,
        "acc_1",
        "create_payment",
        row.key,
        row.fingerprint,
        row.owner,
        if done { "completed" } else { "in_progress" },
        if done { 2 } else { 1 },
        1,
        row.owner,
        "first",
        if done { "purge" } else { "lease" },
        if done { NOW + 8 * DAY } else { NOW + 30_000 },
        NOW,
        NOW + 30_000,
        done.then_some(NOW),
        None::<i64>,
        done.then_some(NOW + DAY),
        done.then_some(NOW + 8 * DAY),
        None::<i64>,
        0,
        false,
        None::<&str>,
        None::<&str>,
        None::<&[u8]>,
        None::<&str>,
        None::<&str>,
        done.then_some(201),
        None::<&str>,
        done.then_some("stored"),
        done.then_some(1_234_567_890),
    ])?;
    debug_assert_eq!(changed, 1, "the statement did what it does in the store");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_s_statements_run_here_too() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut side = Side::open(&runtime, &directory.path().join("bare.db")).unwrap();
        let row = [Row::new()];
        side.transaction(&row, &[]).unwrap();
        side.transaction(&[], &row).unwrap();
    }
}
