//! The statements on records, each prepared once. All of them run inside a transaction.

use crate::error::Fault;
use crate::row::{columns, decode, kept_apart, place_of_answer, stored_version};
use bytes::Bytes;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use semel::clock::Mark;
use semel::columns::{AnswerColumns, Apart, KeyHash, key_hash};
use semel::{
    Created, Draft, Expected, HistoryEntry, Now, OperationId, Purged, Record, RecordKey, StoreError, Swap,
    Swapped, Timestamp,
};
use std::sync::Arc;

/// Reserves a key: inserts its record unless there is one.
pub const CREATE: &str = "INSERT INTO semel_records (
    key_hash, operation_id, tenant, operation, key, fingerprint, recipe, state, version, attempt, owner, origin,
    due_kind, due_at, created_at, lease_until, completed_at, body_expires_at, expires_at, purge_at, reconcile_at,
    reconcile_attempts, dead_letter, last_error, recovery_point, checkpoint, resource_type, resource_id,
    response_status, response_schema, body_kind, response_sum)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
    ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)
  ON CONFLICT (key_hash) DO NOTHING";

// Found by operation id, whose index is appended to and therefore in memory where the record is young. The key's parts are
// compared, not looked up (the plus signs): the hash index, written at random, is not touched.
/// Replaces a record at a version.
pub const SWAP: &str = "UPDATE semel_records SET
    fingerprint = ?6, recipe = ?7, state = ?8, version = ?9, attempt = ?10, owner = ?11, origin = ?12, due_kind = ?13,
    due_at = ?14, created_at = ?15, lease_until = ?16, completed_at = ?17, body_expires_at = ?18, expires_at = ?19,
    purge_at = ?20, reconcile_at = ?21, reconcile_attempts = ?22, dead_letter = ?23, last_error = ?24,
    recovery_point = ?25, checkpoint = ?26, resource_type = ?27, resource_id = ?28, response_status = ?29,
    response_schema = ?30, body_kind = ?31, response_sum = ?32
  WHERE operation_id = ?2 AND version = ?1 AND +tenant = ?3 AND +operation = ?4 AND +key = ?5";

/// Keeps headers and body of an answer until its time is over. They may be those of before, spelt otherwise.
pub const KEEP_ANSWER: &str =
    "INSERT OR REPLACE INTO semel_answers (ends_at, operation_id, headers, body) VALUES (?1, ?2, ?3, ?4)";

/// Keeps nothing more of an answer.
pub(crate) const DROP_ANSWER: &str = "DELETE FROM semel_answers WHERE ends_at = ?1 AND operation_id = ?2";

pub(crate) const ANSWERS_OVER: &str = "SELECT ends_at, operation_id FROM semel_answers
  WHERE ends_at <= ?1 ORDER BY ends_at, operation_id LIMIT ?2";

pub(crate) const DROP_ANSWERS: &str = "DELETE FROM semel_answers WHERE (ends_at, operation_id) <= (?1, ?2)";

pub(crate) const REMOVE: &str = "DELETE FROM semel_records
  WHERE operation_id = ?2 AND version = ?1 AND +tenant = ?3 AND +operation = ?4 AND +key = ?5";

// Found by the index, and judged by the record itself: where its own time of removal has not come, or it has not ended, it stays.
/// Removes records whose time is over, those first that are over for longest.
pub(crate) const PURGE: &str = "DELETE FROM semel_records WHERE id IN (
    SELECT id FROM semel_records
    WHERE due_kind = 'purge' AND due_at <= ?1 AND purge_at <= ?1 AND state NOT IN ('in_progress', 'unknown')
    ORDER BY due_at, operation_id LIMIT ?2)
  RETURNING due_at, operation_id, operation";

/// Whether there is a history of any of these operations.
pub(crate) const ANY_HISTORY: &str =
    "SELECT 1 FROM semel_history WHERE operation_id BETWEEN ?1 AND ?2 LIMIT 1";

pub(crate) const REMOVE_HISTORY: &str = "DELETE FROM semel_history WHERE operation_id = ?1";

pub(crate) const TELL: &str = "INSERT INTO semel_history
    (operation_id, sequence, at, version, happening, actor, attempt, note)
  VALUES (?1, (SELECT coalesce(max(sequence), 0) + 1 FROM semel_history WHERE operation_id = ?1), ?2, ?3, ?4, ?5, ?6, ?7)";

pub(crate) const READ: &str = concat!("SELECT ", columns!(), " FROM semel_records r WHERE key_hash = ?1");

pub(crate) const FIND: &str = concat!("SELECT ", columns!(), " FROM semel_records r WHERE operation_id = ?1");

/// The answer of a record that was read, read by a separate statement, because SQLite would plan a join again for each value.
pub(crate) const ANSWER: &str =
    "SELECT headers, body FROM semel_answers WHERE ends_at = ?1 AND operation_id = ?2";

/// The highest time in the file.
pub const CLOCK: &str = "SELECT now, behind, hold, written_by FROM semel_clock WHERE id = 1";
/// Leaves the time in the file.
pub const SET_CLOCK: &str =
    "UPDATE semel_clock SET now = ?1, behind = ?2, hold = ?3, written_by = ?4 WHERE id = 1";
pub(crate) const REMEMBER: &str =
    "INSERT INTO semel_remembered (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
pub(crate) const RECALL: &str = "SELECT value FROM semel_remembered WHERE name = ?1";

/// Inserts each draft if there is no record of its key; otherwise returns that record.
pub(crate) fn create(
    conn: &Connection,
    drafts: &[Draft],
    hashes: &[KeyHash],
    now: Now,
) -> Result<Vec<Created>, Fault> {
    let mut statement = conn.prepare_cached(CREATE)?;
    let mut create = |(draft, hash): (&Draft, &KeyHash)| {
        if write(conn, &mut statement, hash, draft, now)? == 1 {
            return Ok(Created::Inserted);
        }
        Ok(match there(conn, &draft.key, hash)? {
            Ok(Some(record)) => Created::Exists(Box::new(record)),
            Ok(None) => Created::Damaged("a key is in the index, but not in the table".into()),
            Err(why) => Created::Damaged(why),
        })
    };
    drafts.iter().zip(hashes).map(&mut create).collect()
}

/// Replaces each expected record and appends to its history; otherwise returns what is there.
pub(crate) fn swap(conn: &Connection, swaps: &[Swap], now: Now) -> Result<Vec<Swapped>, Fault> {
    let mut statement = conn.prepare_cached(SWAP)?;
    let mut swap = |swap: &Swap| {
        if write(conn, &mut statement, &stored_version(swap.expected.version), &swap.next, now)? == 0 {
            return what_is_there(conn, &swap.expected.key);
        }
        if let Some(entry) = &swap.history {
            tell(conn, &swap.next, entry, now)?;
        }
        Ok(Swapped::Done)
    };
    swaps.iter().map(&mut swap).collect()
}

/// Removes the expected record and its history; otherwise returns what is there.
pub(crate) fn remove(conn: &Connection, expected: &Expected) -> Result<Swapped, Fault> {
    let key = &expected.key;
    let version = stored_version(expected.version);
    let id = expected.operation_id.as_bytes();
    let removed = conn.prepare_cached(REMOVE)?.execute(params![
        version,
        id,
        key.tenant,
        key.stored_operation(),
        key.key
    ])?;
    if removed == 0 {
        return what_is_there(conn, key);
    }
    conn.prepare_cached(REMOVE_HISTORY)?.execute([id])?;
    Ok(Swapped::Done)
}

fn what_is_there(conn: &Connection, key: &RecordKey) -> Result<Swapped, Fault> {
    Ok(match there(conn, key, &key_hash(key))? {
        Ok(Some(record)) => Swapped::Changed(Box::new(record)),
        Ok(None) => Swapped::Missing,
        Err(why) => Swapped::Damaged(why),
    })
}

/// What a name stands for, or why that cannot be read. Where a page of the file is damaged and not a record, it is a fault instead.
type There = Result<Option<Record>, String>;

/// What is there of this key.
fn there(conn: &Connection, key: &RecordKey, hash: &KeyHash) -> Result<There, Fault> {
    Ok(one(conn, READ, hash)?.and_then(|found| match found {
        Some(record) if !record.key.is_same_record(key) => {
            Err(format!("operation {}: its key has the hash of another key", record.operation_id))
        }
        found => Ok(found),
    }))
}

/// The record of this key.
pub(crate) fn read(conn: &Connection, key: &RecordKey, hash: &KeyHash) -> Result<Option<Record>, Fault> {
    there(conn, key, hash)?.map_err(|why| Fault::Job(StoreError::Damaged(why)))
}

/// The record of this operation id.
pub(crate) fn find(conn: &Connection, id: OperationId) -> Result<Option<Record>, Fault> {
    one(conn, FIND, id.as_bytes())?.map_err(|why| Fault::Job(StoreError::Damaged(why)))
}

fn one(conn: &Connection, sql: &str, name: &[u8; 16]) -> Result<There, Fault> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([name])?;
    let Some(row) = rows.next()? else { return Ok(Ok(None)) };
    let decoded = match place_of_answer(row) {
        None => decode(row, Ok(Apart::Nothing)),
        Some(place) => {
            let mut statement = conn.prepare_cached(ANSWER)?;
            let mut answers = statement.query(place)?;
            decode(row, kept_apart(answers.next()?))
        }
    };
    match decoded {
        Ok(found) => Ok(Ok(Some(found))),
        Err(StoreError::Damaged(why)) => Ok(Err(why)),
        Err(error) => Err(Fault::Job(error)),
    }
}

fn tell(conn: &Connection, next: &Draft, entry: &HistoryEntry, now: Now) -> Result<(), Fault> {
    conn.prepare_cached(TELL)?.execute(params![
        next.operation_id.as_bytes(),
        now.earliest.as_millis(),
        stored_version(next.version),
        entry.happening.as_str(),
        entry.actor.to_string(),
        entry.attempt,
        entry.note,
    ])?;
    Ok(())
}

/// Keeps a value under a name unless there is one; the one that is there in the end.
pub(crate) fn remember(conn: &Connection, name: &str, value: &[u8]) -> Result<(Bytes, bool), Fault> {
    let written = conn.prepare_cached(REMEMBER)?.execute(params![name, value])? == 1;
    let kept = recall(conn, name)?;
    let kept = kept.ok_or_else(|| StoreError::Damaged(format!("the value named {name} is gone")))?;
    Ok((kept, written))
}

/// What is kept under a name.
pub(crate) fn recall(conn: &Connection, name: &str) -> Result<Option<Bytes>, Fault> {
    let value = conn.prepare_cached(RECALL)?.query_row([name], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(value.map(Bytes::from))
}

/// What the file says of its clock.
pub(crate) fn clock_row(conn: &Connection) -> rusqlite::Result<Mark> {
    conn.prepare_cached(CLOCK)?.query_row([], |row| {
        Ok(Mark { at: row.get(0)?, behind: row.get(1)?, hold: row.get(2)?, by: row.get(3)? })
    })
}

/// Leaves a mark in the file.
pub(crate) fn set_clock_row(conn: &Connection, mark: Mark) -> rusqlite::Result<()> {
    conn.prepare_cached(SET_CLOCK)?.execute([mark.at, mark.behind, mark.hold, mark.by]).map(drop)
}

/// Drops answers that are over, those that ended first; when each of them ended.
pub(crate) fn drop_answers(conn: &Connection, at_most: usize, now: Now) -> Result<Vec<Timestamp>, Fault> {
    if now.is_held() {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(ANSWERS_OVER)?;
    // Whatever they are: one that is damaged goes like any other.
    let over =
        statement.query_map([now.earliest.as_millis(), limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let over = over.collect::<rusqlite::Result<Vec<(i64, Value)>>>()?;
    if let Some((end, id)) = over.last() {
        conn.prepare_cached(DROP_ANSWERS)?.execute(params![end, id])?;
    }
    Ok(over.into_iter().map(|(end, _)| Timestamp::from_millis(end)).collect())
}

/// Removes records whose time is over, with their histories; those first that are over for longest.
pub(crate) fn purge(conn: &Connection, at_most: usize, now: Now) -> Result<Vec<Purged>, Fault> {
    // Looked at in this very transaction: whether a clock hold is open is in the row that `now` was judged by.
    if now.is_held() {
        return Ok(Vec::new());
    }
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(PURGE)?;
    // Whatever they are, but for the time that they were found by: one that is damaged goes like any other.
    let gone = statement.query_map([now.earliest.as_millis(), limit], |row| {
        let operation = String::from_utf8_lossy(bytes(row.get_ref(2)?));
        let operation = RecordKey::from_stored("", &*operation, "").operation;
        Ok((row.get(0)?, bytes(row.get_ref(1)?).to_vec(), operation))
    })?;
    let mut gone = gone.collect::<rusqlite::Result<Vec<(i64, Vec<u8>, Arc<str>)>>>()?;
    gone.sort_unstable();
    // Few have a history, and ids that were made one after the other stand together there: mostly one look is enough for all.
    let ids = || gone.iter().map(|(_, id, _)| id);
    if let (Some(first), Some(last)) = (ids().min(), ids().max())
        && conn.prepare_cached(ANY_HISTORY)?.exists([first, last])?
    {
        let mut statement = conn.prepare_cached(REMOVE_HISTORY)?;
        for id in ids() {
            statement.execute([id])?;
        }
    }
    let purged = |(since, _, operation)| Purged { operation, since: Timestamp::from_millis(since) };
    Ok(gone.into_iter().map(purged).collect())
}

fn bytes(value: ValueRef<'_>) -> &[u8] {
    match value {
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => bytes,
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => &[],
    }
}

// Both statements number their parameters alike, but for the first: the hash of the new row, or the version of the old one. What is to
// go before the record does is kept apart from it.
fn write(
    conn: &Connection,
    statement: &mut CachedStatement<'_>,
    first: &dyn rusqlite::ToSql,
    draft: &Draft,
    now: Now,
) -> rusqlite::Result<usize> {
    let at = Timestamp::as_millis;
    let due = draft.due_at(now);
    let (times, resource) = (&draft.times.at(now), draft.resource.as_ref());
    let answer = draft.response.as_ref().map(AnswerColumns::of);
    let answer = answer.as_ref();
    let written = statement.execute(params![
        first,
        draft.operation_id.as_bytes(),
        draft.key.tenant,
        draft.key.stored_operation(),
        draft.key.key,
        draft.fingerprint.0,
        draft.recipe.0,
        draft.state.as_str(),
        stored_version(draft.version),
        draft.attempt,
        draft.owner.as_bytes(),
        draft.origin.as_str(),
        due.map(|(kind, _)| kind.as_str()),
        due.map(|(_, when)| at(when)),
        at(times.created),
        at(times.lease),
        times.completed.map(at),
        times.body_expires.map(at),
        times.expires.map(at),
        times.purge.map(at),
        times.reconcile.map(at),
        draft.reconcile_attempts,
        draft.dead_letter,
        draft.last_error,
        draft.recovery_point,
        draft.checkpoint.as_deref(),
        resource.map(|resource| &resource.kind),
        resource.map(|resource| &resource.id),
        answer.map(|answer| answer.status),
        answer.and_then(|answer| answer.schema),
        answer.map(|answer| answer.kind),
        answer.map(|answer| answer.sum),
    ])?;
    if written == 1
        && let (Some(answer), Some(end)) = (answer, draft.answer_ends().map(|end| end.at(now.latest)))
    {
        let id = draft.operation_id.as_bytes();
        match answer.headers_apart() {
            Some(headers) => {
                conn.prepare_cached(KEEP_ANSWER)?.execute(params![at(end), id, headers, answer.body])?
            }
            // There may have been one in its place: as it was before it was sealed, say.
            None => conn.prepare_cached(DROP_ANSWER)?.execute(params![at(end), id])?,
        };
    }
    Ok(written)
}
