//! The format of client keys, and the trigger that refuses the other one.
//!
//! The trigger is part of the file: it refuses the inserts of every process, of programs from before it, and of an application's own transactions.

use crate::error::Fault;
use crate::statements;
use rusqlite::{Connection, OptionalExtension, params};
use semel::columns::key_hash;
use semel::seal::SEALED_KEY;
use semel::{KeyFormat, KeyFormatSet, Now, OperationId, Record, Respell, StoreError, Swap};

/// How many records are in memory at a time.
const PAGE: i64 = 64;

const USED: &str = "SELECT EXISTS (SELECT 1 FROM semel_records)
    OR EXISTS (SELECT 1 FROM semel_remembered WHERE substr(name, 1, length(?1)) = ?1)";

const UNDER_WAY: &str = "SELECT count(*) FROM semel_records WHERE state = 'in_progress' AND lease_until > ?1";

/// Puts a format in force, within the writer's transaction; whether anything was written.
pub(crate) fn set(
    conn: &Connection,
    format: &KeyFormat,
    respell: Option<&Respell>,
    now: Now,
) -> Result<(KeyFormatSet, bool), Fault> {
    let secret = statements::recall(conn, KeyFormat::SECRET)?;
    match (secret, format) {
        (Some(secret), KeyFormat::Sealed { .. }) => {
            return Ok((KeyFormatSet::InForce(KeyFormat::Sealed { secret }), false));
        }
        (None, KeyFormat::Plain) => return Ok((KeyFormatSet::InForce(KeyFormat::Plain), false)),
        _ => {}
    }
    match respell {
        None => {
            if conn.query_row(USED, [KeyFormat::RECIPES], |row| row.get(0))? {
                return Ok((KeyFormatSet::InUse, false));
            }
        }
        Some(respell) => {
            let count: i64 = conn.query_row(UNDER_WAY, [now.earliest.as_millis()], |row| row.get(0))?;
            if count > 0 {
                return Ok((KeyFormatSet::UnderWay(count.unsigned_abs()), false));
            }
            // What is written over, the keys among it, is not to be found in the file any more.
            conn.pragma_update(None, "secure_delete", true)?;
            let respelt = respell_all(conn, respell, now);
            conn.pragma_update(None, "secure_delete", false)?;
            respelt?;
        }
    }
    let wrong = match format {
        KeyFormat::Sealed { secret } => {
            statements::remember(conn, KeyFormat::SECRET, secret)?;
            "<>"
        }
        KeyFormat::Plain => {
            conn.execute("DELETE FROM semel_remembered WHERE name = ?1", [KeyFormat::SECRET])?;
            "="
        }
    };
    let length = SEALED_KEY.len();
    conn.execute_batch(&format!(
        "DROP TRIGGER IF EXISTS semel_key_format;
         CREATE TRIGGER semel_key_format BEFORE INSERT ON semel_records
         WHEN substr(NEW.key, 1, {length}) {wrong} '{SEALED_KEY}'
         BEGIN SELECT RAISE(ABORT, 'client keys of another format are refused here'); END;"
    ))?;
    Ok((KeyFormatSet::InForce(format.clone()), true))
}

fn respell_all(conn: &Connection, respell: &Respell, now: Now) -> Result<(), Fault> {
    let mut last = i64::MIN;
    loop {
        let page = page_after(conn, last)?;
        let Some((number, _)) = page.last() else { return Ok(()) };
        last = *number;
        for (number, id) in page {
            let found = statements::find(conn, id)?;
            let record = found.ok_or_else(|| StoreError::Damaged(format!("operation {id} is gone")))?;
            respell_one(conn, number, &record, respell, now)?;
        }
    }
}

fn page_after(conn: &Connection, last: i64) -> Result<Vec<(i64, OperationId)>, Fault> {
    let sql = "SELECT id, operation_id FROM semel_records WHERE id > ?1 ORDER BY id LIMIT ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let page = statement
        .query_map(params![last, PAGE], |row| Ok((row.get(0)?, row.get(1).map(OperationId::from_bytes)?)))?;
    // One that cannot be read is in the way of the whole: its key cannot be respelt, and may not stay.
    Ok(page.collect::<rusqlite::Result<_>>()?)
}

fn respell_one(
    conn: &Connection,
    number: i64,
    record: &Record,
    respell: &Respell,
    now: Now,
) -> Result<(), Fault> {
    let next = respell(record)?;
    let sql = "UPDATE semel_records SET key = ?2, key_hash = ?3 WHERE id = ?1";
    conn.prepare_cached(sql)?.execute(params![number, next.key.key, key_hash(&next.key)])?;
    let mut expected = record.expected();
    expected.key = next.key.clone();
    let swaps = [Swap { expected, next, history: None }];
    match statements::swap(conn, &swaps, now)?.as_slice() {
        [semel::Swapped::Done] => Ok(()),
        _ => Err(StoreError::Damaged(format!(
            "operation {}: it changed while its key was converted",
            record.operation_id
        ))
        .into()),
    }
}

/// Replaces what is kept under a name, if it is this; what is there in the end, and whether it was written.
pub(crate) fn replace(
    conn: &Connection,
    name: &str,
    expected: &[u8],
    value: &[u8],
) -> Result<(Option<bytes::Bytes>, bool), Fault> {
    let sql = "UPDATE semel_remembered SET value = ?3 WHERE name = ?1 AND value = ?2 RETURNING 1";
    // What is replaced is a secret: it is not to be found in the file any more.
    conn.pragma_update(None, "secure_delete", true)?;
    let written = conn
        .prepare_cached(sql)
        .and_then(|mut replace| replace.query_row(params![name, expected, value], |_| Ok(())).optional());
    conn.pragma_update(None, "secure_delete", false)?;
    Ok((statements::recall(conn, name)?, written?.is_some()))
}
