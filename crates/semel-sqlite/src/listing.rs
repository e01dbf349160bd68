//! Listings: by filter, by what is due, and the history of one operation.
//!
//! Every statement names its index: the planner does not know how rare a state is, and would guess.

use crate::error::Fault;
use crate::row::{columns, decode, decode_history, row_number};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params};
use semel::columns::{Apart, client_key_range};
use semel::{
    Cursor, DamageLog, DueKind, DueQuery, Filter, HistoryLine, LiveOperations, Now, OperationId, Page,
    Record, RecordKey, State, Timestamp,
};

pub(crate) const HISTORY: &str = "SELECT at, version, happening, actor, attempt, note FROM semel_history
  WHERE operation_id = ?1 ORDER BY sequence";

pub(crate) const COUNT_LIVE: &str =
    "SELECT count(*) FROM (SELECT 1 FROM semel_records INDEXED BY semel_records_tenant
  WHERE tenant = ?1 AND state <> 'expired' AND (expires_at IS NULL OR expires_at > ?2) LIMIT ?3)";

// By the rowid alone, newest first: no index has operations, and only so many rows are looked at.
pub(crate) const LIVE_OPERATIONS: &str =
    "SELECT operation, count(*) FILTER (WHERE state <> 'expired' AND (expires_at IS NULL OR expires_at > ?1)), count(*)
  FROM (SELECT operation, state, expires_at FROM semel_records NOT INDEXED ORDER BY id DESC LIMIT ?2)
  GROUP BY operation";
const BOUNDS: &str = "SELECT (SELECT id FROM semel_records ORDER BY id LIMIT 1),
  (SELECT id FROM semel_records ORDER BY id DESC LIMIT 1)";

const CREATED: &str = "SELECT id, created_at FROM semel_records WHERE id >= ?1 ORDER BY id LIMIT 1";

pub(crate) const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM semel_records r INDEXED BY semel_records_due
  WHERE due_kind = ?1 AND due_at <= ?2 AND (due_at, operation_id) > (?3, ?4)
  ORDER BY due_at, operation_id LIMIT ?5"
);

/// The history of an operation, oldest first.
pub(crate) fn history(conn: &Connection, id: OperationId) -> Result<Vec<HistoryLine>, Fault> {
    let mut statement = conn.prepare_cached(HISTORY)?;
    let mut rows = statement.query([id.as_bytes()])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        lines.push(decode_history(row, id)?);
    }
    Ok(lines)
}

/// What waits for something that is due at `now`, earliest first.
pub(crate) fn due(
    conn: &Connection,
    query: &DueQuery,
    now: Now,
    damage: &DamageLog,
) -> Result<Vec<Record>, Fault> {
    if now.is_held() && matches!(query.kind, DueKind::Window | DueKind::Purge) {
        return Ok(Vec::new());
    }
    // Before every place in the order: no operation id is shorter than none.
    let (moment, id) = query
        .after
        .map_or((i64::MIN, Vec::new()), |(moment, id)| (moment.as_millis(), id.as_bytes().to_vec()));
    let mut statement = conn.prepare_cached(DUE)?;
    // Rows are read one by one: those beyond what is asked for are looked at only in place of damaged ones.
    let limit = sql_limit(query.limit.saturating_add(DamageLog::LIMIT));
    let mut rows =
        statement.query(params![query.kind.as_str(), now.earliest.as_millis(), moment, id, limit])?;
    let mut records = Vec::new();
    while records.len() < query.limit
        && let Some(row) = rows.next()?
    {
        match decode(row, Ok(Apart::NotRead)) {
            Ok(record) => records.push(record),
            Err(error) => damage.pass(error)?,
        }
    }
    Ok(records)
}

/// The number of the first record that may have been created at `moment` or later. Numbers go up with the time of creation, so it is found by
/// halving: a few looks at the table's own index, however many records there are.
fn first_since(conn: &Connection, moment: Timestamp) -> Result<i64, Fault> {
    let bounds = conn.prepare_cached(BOUNDS)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (Some(mut low), Some(newest)): (Option<i64>, Option<i64>) = bounds else { return Ok(0) };
    let moment = moment.minus(Filter::OUT_OF_ORDER).as_millis();
    let mut high = newest.saturating_add(1);
    let mut statement = conn.prepare_cached(CREATED)?;
    while low < high {
        let middle = low + (high - low) / 2;
        let found = statement.query_row([middle], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        match found {
            Some((id, created)) if i64::lt(&created, &moment) => low = i64::saturating_add(id, 1),
            _ => high = middle,
        }
    }
    Ok(low)
}

/// One page of the records that `filter` lets through, in the order that it asks for.
pub(crate) fn list(
    conn: &Connection,
    filter: &Filter,
    now: Timestamp,
    (from, limit): (Option<Cursor>, usize),
    damage: &DamageLog,
) -> Result<Page, Fault> {
    let from = from.map(|cursor| cursor.place()).transpose()?;
    // From where to where the records are that can pass, by their numbers: those of the moments asked for.
    let low = filter.created_from.map(|from| first_since(conn, from)).transpose()?;
    let slack = Filter::OUT_OF_ORDER * 2;
    let high = filter.created_until.map(|until| first_since(conn, until.plus(slack))).transpose()?;
    let (before, stop) = match filter.oldest_first {
        false => (high.unwrap_or(i64::MAX).min(from.unwrap_or(i64::MAX)), low),
        true => {
            let low = low.map_or(i64::MIN, |low| low.saturating_sub(1));
            (low.max(from.unwrap_or(i64::MIN)), high)
        }
    };
    let (sql, mut values) = list_sql(filter, now, stop);
    // One more than requested shows whether there is another page.
    values.extend([Value::Integer(before), Value::Integer(sql_limit(limit).saturating_add(1))]);
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values))?;
    let mut page = Page { records: Vec::new(), damaged: 0, next: None };
    let mut last = before;
    while let Some(row) = rows.next()? {
        if page.records.len() + page.damaged == limit {
            page.next = Some(Cursor::of_place(last));
            break;
        }
        match decode(row, Ok(Apart::NotRead)) {
            Ok(record) => page.records.push(record),
            Err(error) => {
                damage.pass(error)?;
                page.damaged += 1;
            }
        }
        last = row_number(row)?;
    }
    Ok(page)
}

/// How many keys of a tenant are live, up to a number.
pub(crate) fn count_live(
    conn: &Connection,
    tenant: &str,
    now: Timestamp,
    at_most: u64,
) -> Result<u64, Fault> {
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    let live: i64 =
        conn.prepare_cached(COUNT_LIVE)?.query_row((tenant, now.as_millis(), at_most), |row| row.get(0))?;
    Ok(u64::try_from(live).unwrap_or(0))
}

/// How many keys are live of each operation, among so many records that were created last.
pub(crate) fn live_operations(
    conn: &Connection,
    newest: usize,
    now: Timestamp,
) -> Result<LiveOperations, Fault> {
    let mut statement = conn.prepare_cached(LIVE_OPERATIONS)?;
    let mut rows = statement.query((now.as_millis(), sql_limit(newest)))?;
    let (mut live, mut seen) = (LiveOperations::default(), 0);
    while let Some(row) = rows.next()? {
        let key = RecordKey::from_stored("", row.get::<_, String>(0)?, "");
        let (count, all) = (row.get::<_, i64>(1)?.unsigned_abs(), row.get::<_, i64>(2)?.unsigned_abs());
        seen += all;
        if count > 0 {
            live.operations.insert((key.operation.to_string(), key.scope), count);
        }
    }
    live.is_all = seen < newest as u64;
    Ok(live)
}

fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The statement of a listing, and the values of its filter; the place to begin at and the limit come after them. `stop`: the number of the last
/// record that can pass.
pub(crate) fn list_sql(filter: &Filter, now: Timestamp, stop: Option<i64>) -> (String, Vec<Value>) {
    let index = index_for(filter);
    let (mut terms, mut values) = (String::new(), Vec::new());
    let mut term = |words: &str, bound: Vec<Value>| {
        terms.push_str(words);
        terms.push_str(" AND ");
        values.extend(bound);
    };
    // The records of a client key are few, whatever their tenants, operations and scopes are.
    if let Some(key) = &filter.key {
        let (low, high) = client_key_range(key);
        term("key_hash >= ? AND key_hash <= ?", vec![Value::Blob(low.into()), Value::Blob(high.into())]);
    }
    for (words, value) in [("tenant = ?", &filter.tenant), ("key = ?", &filter.key)] {
        if let Some(value) = value {
            term(words, vec![Value::Text(value.clone())]);
        }
    }
    if let Some(operation) = &filter.operation {
        term("operation IN (?, ?)", RecordKey::stored_operations(operation).map(Value::Text).into());
    }
    if let Some(from) = filter.created_from {
        term("created_at >= ?", vec![Value::Integer(from.as_millis())]);
    }
    if let Some(until) = filter.created_until {
        term("created_at < ?", vec![Value::Integer(until.as_millis())]);
    }
    if let Some(stop) = stop {
        term(if filter.oldest_first { "id <= ?" } else { "id >= ?" }, vec![Value::Integer(stop)]);
    }
    // That a window is over is read off the time. States are spelt out, for only then can SQLite tell that a partial index will do.
    let now = Value::Integer(now.as_millis());
    match filter.state {
        None => {}
        Some(State::Expired) => term("(state = 'expired' OR expires_at <= ?)", vec![now]),
        Some(state) if state.is_final() => {
            term(&format!("state = '{}' AND expires_at > ?", state.as_str()), vec![now]);
        }
        Some(state) => terms.push_str(&format!("state = '{}' AND ", state.as_str())),
    }
    if index == Some("due") {
        // All that are in progress and no others wait for their lease, and there is an index of what records wait for.
        terms.push_str("due_kind = 'lease' AND ");
    }
    match filter.dead_letter {
        Some(true) => terms.push_str("dead_letter = 1 AND "),
        Some(false) => terms.push_str("dead_letter = 0 AND "),
        None => {}
    }
    let index = index.map_or("NOT INDEXED".into(), |name| format!("INDEXED BY semel_records_{name}"));
    let columns = columns!();
    let order = if filter.oldest_first { "id > ? ORDER BY id" } else { "id < ? ORDER BY id DESC" };
    let sql = format!("SELECT {columns} FROM semel_records r {index} WHERE {terms}{order} LIMIT ?");
    (sql, values)
}

/// The index that leaves the fewest records to look at. Without one: the table itself, newest first.
fn index_for(filter: &Filter) -> Option<&'static str> {
    if filter.key.is_some() {
        return Some("key");
    }
    if filter.dead_letter == Some(true) {
        return Some("dead_letter");
    }
    match filter.state {
        Some(State::InProgress) => Some("due"),
        Some(State::FailedReplayable | State::FailedRetryable | State::Unknown) => Some("rare"),
        // Most records are in these states, or nothing is known of how many are.
        _ => filter.tenant.as_ref().map(|_| "tenant"),
    }
}
