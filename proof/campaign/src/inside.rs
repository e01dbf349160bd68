//! The store seen from inside, past Semel: what is in it, and a hand that damages it.

use crate::fencing::{Kept, Line};
use crate::ledger::Ledger;
use crate::outcome::Outcome;
use crate::pairs::{Census, State};
use fastrand::Rng;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use std::path::PathBuf;
use std::time::Duration;

/// Where the tables are.
pub(crate) enum Inside {
    Sqlite(PathBuf),
    Postgres(String),
}

/// All that Semel wrote down, at the end.
#[derive(Default)]
pub(crate) struct Records {
    pub(crate) kept: Vec<Kept>,
    /// In the order in which they were written, operation by operation.
    pub(crate) history: Vec<Line>,
}

/// Whose answer was damaged. The client's key may be sealed in the store: the operation is named by its id.
pub(crate) struct Flipped {
    /// In hexadecimal digits alone.
    pub(crate) operation_id: String,
    pub(crate) state: String,
}

/// How long a question may take while things go wrong.
const PATIENCE: Duration = Duration::from_secs(2);

// The view reads off the time whose window is over.
const BY_STATE: &str = "SELECT state, count(*) FROM semel_operations GROUP BY state";
const HISTORY: &str = "version, attempt, happening, actor FROM semel_history ORDER BY operation_id, sequence";
const PAYMENTS: &str = "SELECT reference, operation_id, attempt FROM campaign_payments";
/// A stored answer at a random place, from the records that stay as they are.
const ANSWER: &str = "FROM semel_records JOIN semel_answers USING (operation_id)
  WHERE state IN ('completed', 'failed_replayable') AND operation IN ('pay', 'POST /payments') AND body IS NOT NULL";

impl Inside {
    /// How many records are in each state; `None`: it cannot be asked at the moment.
    pub(crate) async fn census(&self) -> Option<Census> {
        let rows: Vec<(String, i64)> = match self {
            Self::Sqlite(_) => tokio::task::block_in_place(|| {
                let file = self.open(true).ok()?;
                let mut statement = file.prepare(BY_STATE).ok()?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
                rows.collect::<Result<_, _>>().ok()
            })?,
            Self::Postgres(url) => {
                let asked = async {
                    let mut connection = PgConnection::connect(url).await?;
                    let rows = sqlx::query_as(BY_STATE).fetch_all(&mut connection).await?;
                    connection.close().await?;
                    Ok::<_, sqlx::Error>(rows)
                };
                tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()?
            }
        };
        let counted = |(name, count): (String, i64)| Some((State::named(&name)?, u32::try_from(count).ok()?));
        Some(rows.into_iter().filter_map(counted).collect())
    }

    /// Flips one bit of a stored answer; `None`: there was none, or the store was not to be had.
    pub(crate) async fn flip_a_bit(&self, rng: &mut Rng) -> Option<Flipped> {
        let (place, bit) = (rng.f64(), rng.usize(..));
        match self {
            Self::Sqlite(_) => tokio::task::block_in_place(|| {
                let file = self.open(false).ok()?;
                let last: i64 =
                    file.query_row("SELECT max(id) FROM semel_records", [], |row| row.get(0)).ok()?;
                let choose = format!(
                    "SELECT lower(hex(operation_id)), state, body {ANSWER} AND id >= ?1 ORDER BY id LIMIT 1"
                );
                let (operation_id, state, mut body): (String, String, Vec<u8>) = file
                    .query_row(&choose, [at(place, last)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                    .optional()
                    .ok()??;
                flip(&mut body, bit);
                let damage = "UPDATE semel_answers SET body = ?1 WHERE operation_id = unhex(?2)";
                file.execute(damage, (&body, &operation_id)).ok()?;
                Some(Flipped { operation_id, state })
            }),
            Self::Postgres(url) => {
                let flipping = async {
                    let mut connection = PgConnection::connect(url).await?;
                    let last: i64 = sqlx::query_scalar("SELECT coalesce(max(id), 0) FROM semel_records")
                        .fetch_one(&mut connection)
                        .await?;
                    let choose = format!(
                        "SELECT replace(operation_id::text, '-', ''), state, body {ANSWER} AND id >= $1 ORDER BY id LIMIT 1"
                    );
                    let chosen: Option<(String, String, Vec<u8>)> = sqlx::query_as(AssertSqlSafe(choose))
                        .bind(at(place, last))
                        .fetch_optional(&mut connection)
                        .await?;
                    let Some((operation_id, state, mut body)) = chosen else { return Ok(None) };
                    flip(&mut body, bit);
                    sqlx::query("UPDATE semel_answers SET body = $1 WHERE operation_id = $2::uuid")
                        .bind(&body)
                        .bind(&operation_id)
                        .execute(&mut connection)
                        .await?;
                    Ok::<_, sqlx::Error>(Some(Flipped { operation_id, state }))
                };
                tokio::time::timeout(PATIENCE, flipping).await.ok()?.ok()?
            }
        }
    }

    /// Everything that was written down.
    pub(crate) async fn records(&self) -> Outcome<Records> {
        match self {
            Self::Sqlite(_) => tokio::task::block_in_place(|| {
                let file = self.open(true)?;
                let mut statement =
                    file.prepare("SELECT lower(hex(operation_id)), attempt, state FROM semel_records")?;
                let kept = statement.query_map([], |row| {
                    Ok(Kept { operation_id: row.get(0)?, attempt: row.get(1)?, state: row.get(2)? })
                })?;
                let kept = kept.collect::<Result<_, _>>()?;
                let mut statement = file.prepare(&format!("SELECT lower(hex(operation_id)), {HISTORY}"))?;
                let lines = statement.query_map([], |row| {
                    Ok(Line {
                        operation_id: row.get(0)?,
                        version: row.get(1)?,
                        attempt: row.get(2)?,
                        happening: row.get(3)?,
                        actor: row.get(4)?,
                    })
                })?;
                Ok(Records { kept, history: lines.collect::<Result<_, _>>()? })
            }),
            Self::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                let id = "replace(operation_id::text, '-', '')";
                let kept = format!("SELECT {id}, attempt, state FROM semel_records");
                let kept: Vec<(String, i64, String)> =
                    sqlx::query_as(AssertSqlSafe(kept)).fetch_all(&mut connection).await?;
                let kept = kept.into_iter();
                let kept = kept
                    .map(|(operation_id, attempt, state)| Kept { operation_id, attempt, state })
                    .collect();
                let lines = format!("SELECT {id}, {HISTORY}");
                let lines: Vec<(String, i64, i64, String, String)> =
                    sqlx::query_as(AssertSqlSafe(lines)).fetch_all(&mut connection).await?;
                let line = |(operation_id, version, attempt, happening, actor)| Line {
                    operation_id,
                    version,
                    attempt,
                    happening,
                    actor,
                };
                Ok(Records { kept, history: lines.into_iter().map(line).collect() })
            }
        }
    }

    /// What services with Semel's layer have written of their own, in the store's own transactions.
    pub(crate) async fn payments(&self) -> Outcome<Ledger> {
        let rows: Vec<(String, String, i64)> = match self {
            Self::Sqlite(_) => tokio::task::block_in_place(|| {
                let file = self.open(true)?;
                let mut statement = file.prepare(PAYMENTS)?;
                let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(rows.collect::<Result<_, _>>()?)
            })?,
            Self::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::query_as(PAYMENTS).fetch_all(&mut connection).await?
            }
        };
        let mut ledger = Ledger::default();
        for (reference, operation_id, attempt) in rows {
            ledger.add(&reference, &operation_id, attempt);
        }
        Ok(ledger)
    }

    /// Opens the file. Whoever looks must not tidy up: the last one to close a file would write its log back into it.
    fn open(&self, only_to_read: bool) -> Outcome<Connection> {
        let Self::Sqlite(path) = self else { return Err("not a file".into()) };
        let flags =
            if only_to_read { OpenFlags::SQLITE_OPEN_READ_ONLY } else { OpenFlags::SQLITE_OPEN_READ_WRITE };
        let file = Connection::open_with_flags(path, flags)?;
        file.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        file.busy_timeout(PATIENCE)?;
        Ok(file)
    }
}

/// The row at this part of the way to the last one.
fn at(place: f64, last: i64) -> i64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "any row will do")]
    let row = (place * last as f64) as i64;
    row
}

fn flip(bytes: &mut [u8], bit: usize) {
    if !bytes.is_empty() {
        let bit = bit % (bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}
