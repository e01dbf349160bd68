//! The format of client keys, and the constraint that refuses the other one.
//!
//! The constraint is part of the table: it refuses the inserts of every process, of programs from before it, and of an application's own transactions.

use crate::connections::begin;
use crate::error::{of_a_commit, sqlstate, unavailable};
use crate::key::KeyHash;
use crate::row::decode;
use crate::same_transaction::Terms;
use crate::statements::{FIND, UNDER_WAY};
use crate::text::stored;
use crate::write::{swap_query, wrote};
use bytes::Bytes;
use semel::seal::SEALED_KEY;
use semel::{KeyFormat, KeyFormatSet, Record, Respell, StoreError, Swap};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, PgPool, Row, raw_sql};
use uuid::Uuid;

/// How many records are in memory at a time.
const PAGE: i64 = 64;

/// "semel kf" as a number: the advisory lock that is held while setting the format. Without it, two that have looked at the table and
/// then want it for themselves would wait for each other.
const ALONE: &str = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = 0;
SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write');
SELECT pg_advisory_xact_lock(8315172569382677350)";

/// From here on reservations wait.
const LOCK: &str = "LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE";

const USED: &str = "SELECT EXISTS (SELECT 1 FROM semel_records) OR EXISTS (SELECT 1 FROM semel_remembered WHERE starts_with(name, $1))";

/// Puts a format in force, in a transaction of its own.
pub(crate) async fn set(
    pool: &PgPool,
    terms: Terms,
    format: KeyFormat,
    respell: Option<Respell>,
) -> Result<KeyFormatSet, StoreError> {
    let failed = |error: sqlx::Error| unavailable(&error);
    let mut transaction = begin(pool).await.map_err(failed)?;
    let set = set_in(&mut transaction, terms, &format, respell.as_ref()).await;
    match set {
        Ok(set @ KeyFormatSet::InForce(_)) => {
            transaction.commit().await.map_err(|error| of_a_commit(&error))?;
            Ok(set)
        }
        Ok(set) => transaction.rollback().await.map(|()| set).map_err(failed),
        Err(Failed::Store(error)) => Err(error),
        // insufficient_privilege
        Err(Failed::Sqlx(error)) if sqlstate(&error).as_deref() == Some("42501") => {
            Ok(KeyFormatSet::NotAllowed(format!(
                "the constraint needs the owner of the table semel_records: {error}"
            )))
        }
        Err(Failed::Sqlx(error)) => Err(unavailable(&error)),
    }
}

enum Failed {
    Store(StoreError),
    Sqlx(sqlx::Error),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<sqlx::Error> for Failed {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlx(error)
    }
}

async fn set_in(
    conn: &mut PgConnection,
    terms: Terms,
    format: &KeyFormat,
    respell: Option<&Respell>,
) -> Result<KeyFormatSet, Failed> {
    raw_sql(ALONE).execute(&mut *conn).await?;
    // Before anybody is kept out: most stores were used, and stay so.
    if respell.is_none() && is_used(conn).await? && secret(conn).await?.is_none() {
        return Ok(match format {
            KeyFormat::Plain => KeyFormatSet::InForce(KeyFormat::Plain),
            KeyFormat::Sealed { .. } => KeyFormatSet::InUse,
        });
    }
    raw_sql(LOCK).execute(&mut *conn).await?;
    match (secret(conn).await?, format) {
        (Some(secret), KeyFormat::Sealed { .. }) => {
            return Ok(KeyFormatSet::InForce(KeyFormat::Sealed { secret }));
        }
        (None, KeyFormat::Plain) => return Ok(KeyFormatSet::InForce(KeyFormat::Plain)),
        _ => {}
    }
    // The constraint of before; the new one is checked over all that is there.
    raw_sql("ALTER TABLE semel_records DROP CONSTRAINT IF EXISTS semel_records_key_format")
        .execute(&mut *conn)
        .await?;
    match respell {
        None => {
            let used =
                sqlx::query(USED).persistent(false).bind(KeyFormat::RECIPES).fetch_one(&mut *conn).await?;
            if used.try_get(0)? {
                return Ok(KeyFormatSet::InUse);
            }
        }
        Some(respell) => {
            let under_way = sqlx::query(UNDER_WAY).persistent(false).bind(terms.asked.numbers);
            let count: i64 = under_way.fetch_one(&mut *conn).await?.try_get(0)?;
            if count > 0 {
                return Ok(KeyFormatSet::UnderWay(count.unsigned_abs()));
            }
            respell_all(conn, terms, respell).await?;
        }
    }
    let not = match format {
        KeyFormat::Sealed { secret } => {
            let keep = sqlx::query("INSERT INTO semel_remembered (name, value) VALUES ($1, $2)");
            keep.persistent(false).bind(KeyFormat::SECRET).bind(&**secret).execute(&mut *conn).await?;
            ""
        }
        KeyFormat::Plain => {
            let forget = sqlx::query("DELETE FROM semel_remembered WHERE name = $1");
            forget.persistent(false).bind(KeyFormat::SECRET).execute(&mut *conn).await?;
            "NOT "
        }
    };
    let constraint = format!(
        "ALTER TABLE semel_records ADD CONSTRAINT semel_records_key_format CHECK ({not}starts_with(key, '{SEALED_KEY}'))"
    );
    raw_sql(AssertSqlSafe(constraint)).execute(&mut *conn).await?;
    Ok(KeyFormatSet::InForce(format.clone()))
}

async fn is_used(conn: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let used = sqlx::query(USED).persistent(false).bind(KeyFormat::RECIPES).fetch_one(conn).await?;
    used.try_get(0)
}

async fn secret(conn: &mut PgConnection) -> Result<Option<Bytes>, sqlx::Error> {
    let secret = sqlx::query("SELECT value FROM semel_remembered WHERE name = $1").persistent(false);
    let row = secret.bind(KeyFormat::SECRET).fetch_optional(conn).await?;
    row.map(|row| row.try_get::<Vec<u8>, _>(0).map(Bytes::from)).transpose()
}

async fn respell_all(conn: &mut PgConnection, terms: Terms, respell: &Respell) -> Result<(), Failed> {
    let mut last = i64::MIN;
    loop {
        let sql = "SELECT id, operation_id FROM semel_records WHERE id > $1 ORDER BY id LIMIT $2";
        let page = sqlx::query(sql).persistent(false).bind(last).bind(PAGE).fetch_all(&mut *conn).await?;
        let Some(row) = page.last() else { return Ok(()) };
        last = row.try_get(0)?;
        let ids = page.iter().map(|row| row.try_get(1)).collect::<Result<Vec<Uuid>, _>>()?;
        let found = sqlx::query(FIND).persistent(false).bind(terms.asked.numbers).bind(ids);
        let found = found.fetch_all(&mut *conn).await?;
        for row in &found {
            // One that cannot be read is in the way of the whole: its key cannot be respelt, and may not stay.
            if let Some(record) = decode(row, true)? {
                respell_one(conn, terms, &record, respell).await?;
            }
        }
    }
}

async fn respell_one(
    conn: &mut PgConnection,
    terms: Terms,
    record: &Record,
    respell: &Respell,
) -> Result<(), Failed> {
    let next = respell(record)?;
    let hash = KeyHash::of(&next.key);
    let sql = "UPDATE semel_records SET key = $2, key_hash = $3 WHERE operation_id = $1";
    let update = sqlx::query(sql).persistent(false).bind(Uuid::from(record.operation_id));
    update.bind(&*stored(&next.key.key)).bind(hash.uuid()).execute(&mut *conn).await?;
    let mut expected = record.expected();
    expected.key = next.key.clone();
    let swap = Swap { expected, next, history: None };
    let rows = swap_query(terms.asked, terms.lossy, &[(hash, &swap)])
        .persistent(false)
        .fetch_all(&mut *conn)
        .await?;
    let done = wrote(rows)?.map(|wrote| wrote.done()).transpose()?;
    if done.is_none_or(|done| done.is_empty()) {
        let what = format!("operation {}: its key could not be converted", record.operation_id);
        return Err(StoreError::Unavailable(what).into());
    }
    Ok(())
}

pub(crate) const REPLACE: &str = "UPDATE semel_remembered SET value = $3 WHERE name = $1 AND value = $2
  AND ($4::boolean OR current_setting('synchronous_commit') IN ('on', 'remote_apply'))";
