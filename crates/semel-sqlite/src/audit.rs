//! The audit: appended together with the change that it is about, listed, and purged.

use crate::error::Fault;
use crate::row::decode_audit;
use crate::statements;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::{DamageLog, Now, StoreError, Swap, Swapped};
use std::time::Duration;

/// Appends an entry.
pub(crate) const APPEND: &str = "INSERT INTO semel_audit
    (at, entry_id, actor, action, result, target, tenant, operation, details)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

pub(crate) const PURGE_AUDIT: &str = "DELETE FROM semel_audit WHERE sequence IN (
    SELECT sequence FROM semel_audit INDEXED BY semel_audit_at WHERE at < ?1 ORDER BY at, sequence LIMIT ?2)";

/// Makes the change, and appends the entry if that was done.
pub(crate) fn write(
    conn: &Connection,
    entry: &AuditEntry,
    change: Option<&Swap>,
    now: Now,
) -> Result<Vec<Swapped>, Fault> {
    let swapped = match change {
        None => vec![Swapped::Done],
        Some(swap) => statements::swap(conn, std::slice::from_ref(swap), now)?,
    };
    if swapped == [Swapped::Done] {
        append(conn, entry, now)?;
    }
    Ok(swapped)
}

/// Appends an entry.
pub(crate) fn append(conn: &Connection, entry: &AuditEntry, now: Now) -> rusqlite::Result<()> {
    conn.prepare_cached(APPEND)?
        .execute(params![
            now.earliest.as_millis(),
            entry.id.as_bytes(),
            entry.actor,
            entry.action.as_str(),
            entry.result.as_str(),
            entry.target,
            entry.tenant,
            entry.operation,
            entry.details.to_json(),
        ])
        .map(drop)
}

/// Removes entries that are older than this, the oldest first.
pub(crate) fn purge(
    conn: &Connection,
    older_than: Duration,
    at_most: usize,
    now: Now,
) -> Result<(u64, bool), Fault> {
    if now.is_held() {
        return Ok((0, false));
    }
    let before = now.earliest.minus(older_than).as_millis();
    let limit = i64::try_from(at_most).unwrap_or(i64::MAX);
    let gone = conn.prepare_cached(PURGE_AUDIT)?.execute([before, limit])?;
    Ok((gone as u64, gone > 0))
}

/// One page, newest first.
pub(crate) fn list(
    conn: &Connection,
    filter: &AuditFilter,
    from: Option<&AuditCursor>,
    limit: usize,
    damage: &DamageLog,
) -> Result<AuditPage, Fault> {
    let elsewhere = || Fault::Job(StoreError::Unavailable("a cursor from elsewhere".into()));
    let place = match from {
        None => (i64::MAX, i64::MAX),
        Some(from) => from.place().map(|(at, number)| (at.as_millis(), number)).ok_or_else(elsewhere)?,
    };
    let (sql, mut values) = list_sql(filter);
    // One more than requested shows whether there is another page.
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    values.extend([place.0, place.1, most].map(Value::Integer));
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut page = AuditPage { lines: Vec::new(), damaged: 0, next: None };
    let mut last = None;
    while let Some(row) = rows.next()? {
        if page.lines.len() + page.damaged == limit {
            page.next = last;
            break;
        }
        match decode_audit(row) {
            Ok(line) => page.lines.push(line),
            Err(error) => {
                damage.pass(error)?;
                page.damaged += 1;
            }
        }
        let (at, number): (i64, i64) = (row.get(0)?, row.get(9)?);
        last = Some(AuditCursor::at(semel::Timestamp::from_millis(at), number));
    }
    Ok(page)
}

/// The statement of a listing, and the values of its filter; the place to begin before and the limit come after them.
pub(crate) fn list_sql(filter: &AuditFilter) -> (String, Vec<Value>) {
    let (mut terms, mut values) = (String::new(), Vec::new());
    let mut term = |words: &str, value: Option<Value>| {
        if let Some(value) = value {
            terms.push_str(words);
            terms.push_str(" AND ");
            values.push(value);
        }
    };
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    let name = |name: &'static str| Value::Text(name.into());
    term("target = ?", text(&filter.target));
    term("tenant = ?", text(&filter.tenant));
    term("actor = ?", text(&filter.actor));
    term("operation = ?", text(&filter.operation));
    term("action = ?", filter.action.map(|action| name(action.as_str())));
    term("result = ?", filter.result.map(|result| name(result.as_str())));
    term("at >= ?", filter.from.map(|from| Value::Integer(from.as_millis())));
    term("at < ?", filter.until.map(|until| Value::Integer(until.as_millis())));
    let index = index_for(filter);
    let sql = format!(
        "SELECT at, entry_id, actor, action, result, target, tenant, operation, details, sequence
  FROM semel_audit INDEXED BY semel_audit_{index} WHERE {terms}(at, sequence) < (?, ?)
  ORDER BY at DESC, sequence DESC LIMIT ?"
    );
    (sql, values)
}

/// The index that leaves the fewest entries to look at.
fn index_for(filter: &AuditFilter) -> &'static str {
    let given = [
        (filter.target.is_some(), "target"),
        (filter.tenant.is_some(), "tenant"),
        (filter.actor.is_some(), "actor"),
        (filter.action.is_some(), "action"),
    ];
    given.into_iter().find(|(given, _)| *given).map_or("at", |(_, index)| index)
}
