//! Listings: by filter, by what is due, and the history of one operation.

use crate::call::Server;
use crate::clock::StoreClock;
use crate::key::client_key_range;
use crate::read::{moment, not_on_a_standby};
use crate::row::{AFTER_RECORD, computed, decode, decode_history, row_number};
use crate::statements::{COUNT_LIVE, DUE, HISTORY, LIVE_OPERATIONS, listing_now, read_columns};
use crate::text::{original, stored};
use semel::{
    Answer, Cursor, DamageLog, DueKind, DueQuery, Filter, HistoryLine, LiveOperations, OperationId, Page,
    RecordKey, State, StoreError, Timestamp,
};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

const BOUNDS: &str = "SELECT (SELECT id FROM semel_records ORDER BY id LIMIT 1),
  (SELECT id FROM semel_records ORDER BY id DESC LIMIT 1)";

const CREATED: &str = "SELECT id, created_at FROM semel_records WHERE id >= $1 ORDER BY id LIMIT 1";

/// The history of an operation, oldest first.
pub(crate) async fn history(server: &Server, id: OperationId) -> Result<Vec<HistoryLine>, StoreError> {
    let rows = server.look(sqlx::query(HISTORY).bind(Uuid::from(id))).await?;
    rows.first().map_or(Ok(()), |row| not_on_a_standby(row, 6))?;
    rows.iter().map(|row| decode_history(row, id)).collect()
}

/// What waits for something that is due, earliest first.
pub(crate) async fn due(
    server: &Server,
    clock: &StoreClock,
    query: &DueQuery,
    damage: &DamageLog,
) -> Result<Answer<semel::Record>, StoreError> {
    let (after, after_id) =
        query.after.map_or((i64::MIN, Uuid::nil()), |(moment, id)| (moment.as_millis(), id.into()));
    let mut damaged = 0;
    loop {
        // In place of those that are damaged, as many more.
        let limit = query.limit.saturating_add(damaged);
        let asked = clock.ask();
        let statement = sqlx::query(DUE).bind(asked.numbers).bind(query.kind.as_str()).bind(sql_limit(limit));
        let statement = statement.bind(after).bind(after_id);
        let rows = server.look(statement).await?;
        let now = clock.judged(&asked, &moment(&rows)?)?;
        let (mut items, before) = (Vec::new(), damaged);
        damaged = 0;
        for row in &rows {
            match decode(row, false) {
                Ok(found) => items.extend(found),
                Err(error) => {
                    damage.pass(error)?;
                    damaged += 1;
                }
            }
        }
        let all = items.len() + damaged < limit;
        if damaged <= before || all || damaged > DamageLog::LIMIT {
            items.sort_by_key(|record: &semel::Record| (record.due().map(|(_, at)| at), record.operation_id));
            // A record may have been repaired meanwhile.
            items.truncate(query.limit);
            if now.is_held() && matches!(query.kind, DueKind::Window | DueKind::Purge) {
                items.clear();
            }
            return Ok(Answer::at(now, items));
        }
    }
}

/// The number of the first record that may have been created at `moment` or later. Numbers go up with the time of creation, but for those that were
/// made at once, so it is found by halving: a few looks at the primary key, however many records there are.
async fn first_since(server: &Server, moment: Timestamp) -> Result<i64, StoreError> {
    let bounds = server.look(sqlx::query(BOUNDS).persistent(false)).await?;
    let number = |row: &PgRow, column: usize| {
        row.try_get::<Option<i64>, _>(column).map_err(|error| StoreError::Damaged(error.to_string()))
    };
    let Some(bounds) = bounds.first() else { return Ok(0) };
    let (Some(mut low), Some(newest)) = (number(bounds, 0)?, number(bounds, 1)?) else { return Ok(0) };
    let moment = moment.minus(Filter::OUT_OF_ORDER).as_millis();
    let mut high = newest.saturating_add(1);
    while low < high {
        let middle = low + (high - low) / 2;
        let rows = server.look(sqlx::query(CREATED).persistent(false).bind(middle)).await?;
        match rows.first().map(|row| Ok::<_, StoreError>((number(row, 0)?, number(row, 1)?))).transpose()? {
            Some((Some(id), Some(created))) if created < moment => low = id.saturating_add(1),
            _ => high = middle,
        }
    }
    Ok(low)
}

/// One page of the records that `filter` lets through, in the order that it asks for.
pub(crate) async fn list(
    server: &Server,
    filter: &Filter,
    from: Option<Cursor>,
    limit: usize,
    damage: &DamageLog,
) -> Result<Page, StoreError> {
    let from = from.map(|cursor| cursor.place()).transpose()?;
    // From where to where the records are that can pass, by their numbers: those of the moments asked for.
    let low = match filter.created_from {
        Some(moment) => Some(first_since(server, moment).await?),
        None => None,
    };
    let high = match filter.created_until {
        Some(moment) => Some(first_since(server, moment.plus(Filter::OUT_OF_ORDER * 2)).await?),
        None => None,
    };
    let (before, stop) = match filter.oldest_first {
        false => (high.unwrap_or(i64::MAX).min(from.unwrap_or(i64::MAX)), low),
        true => {
            let low = low.map_or(i64::MIN, |low| low.saturating_sub(1));
            (low.max(from.unwrap_or(i64::MIN)), high)
        }
    };
    let (sql, values) = list_sql(filter, stop);
    // The SQL text is fixed and values are bound. Planned each time: the best index depends on the values.
    let mut statement = sqlx::query(AssertSqlSafe(sql)).persistent(false).bind(before);
    // One more than requested shows whether there is another page.
    statement = statement.bind(sql_limit(limit).saturating_add(1));
    for value in values {
        statement = match value {
            Value::Text(text) => statement.bind(text),
            Value::Texts(texts) => statement.bind(texts),
            Value::Uuid(uuid) => statement.bind(uuid),
        };
    }
    let rows = server.look(statement).await?;
    rows.first().map_or(Ok(()), |row| not_on_a_standby(row, AFTER_RECORD))?;
    let mut page = Page { records: Vec::new(), damaged: 0, next: None };
    let mut last = before;
    for row in &rows {
        if page.records.len() + page.damaged == limit {
            page.next = Some(Cursor::of_place(last));
            break;
        }
        match decode(row, false) {
            Ok(record) => page.records.extend(record),
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
pub(crate) async fn count_live(server: &Server, tenant: &str, at_most: u64) -> Result<u64, StoreError> {
    let at_most = i64::try_from(at_most).unwrap_or(i64::MAX);
    // Planned each time, like listings: the best plan depends on the tenant's share of the table.
    let statement = sqlx::query(COUNT_LIVE).persistent(false).bind(stored(tenant)).bind(at_most);
    let rows = server.look(statement).await?;
    let row = rows.first().ok_or_else(|| StoreError::Damaged("the server returned no count".into()))?;
    not_on_a_standby(row, 1)?;
    let live: i64 = row.try_get(0).map_err(|error| StoreError::Damaged(error.to_string()))?;
    Ok(u64::try_from(live).unwrap_or(0))
}

/// How many keys are live of each operation, among so many records that were created last.
pub(crate) async fn live_operations(server: &Server, newest: usize) -> Result<LiveOperations, StoreError> {
    // Planned each time: what is best depends on how many are looked at.
    let statement = sqlx::query(LIVE_OPERATIONS).persistent(false).bind(sql_limit(newest));
    let rows = server.look(statement).await?;
    rows.first().map_or(Ok(()), |row| not_on_a_standby(row, 3))?;
    let (mut live, mut seen) = (LiveOperations::default(), 0);
    for row in &rows {
        let stored: String = computed(row, 0)?;
        let key = RecordKey::from_stored("", original(&stored).unwrap_or(stored), "");
        let (count, all) = (computed::<i64>(row, 1)?.unsigned_abs(), computed::<i64>(row, 2)?.unsigned_abs());
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

/// The values that a filter binds.
#[derive(Debug)]
pub(crate) enum Value {
    Text(String),
    Texts(Vec<String>),
    Uuid(Uuid),
}

/// The statement of a listing, and the values of its filter: parameters 3 and on, after the place to begin at and the
/// limit. `stop`: the number of the last record that can pass.
pub(crate) fn list_sql(filter: &Filter, stop: Option<i64>) -> (String, Vec<Value>) {
    let (mut terms, mut values) = (String::new(), Vec::new());
    let mut term = |words: &str, end: &str, value: Value| {
        values.push(value);
        terms.push_str(&format!(" AND {words} ${}{end}", values.len() + 2));
    };
    // The records of a client key are few, whatever their tenants, operations and scopes are.
    if let Some(key) = &filter.key {
        let (low, high) = client_key_range(key);
        term("r.key_hash >=", "", Value::Uuid(low));
        term("r.key_hash <=", "", Value::Uuid(high));
    }
    for (words, text) in [("r.tenant =", &filter.tenant), ("r.key =", &filter.key)] {
        if let Some(text) = text {
            term(words, "", Value::Text(stored(text).into_owned()));
        }
    }
    if let Some(operation) = &filter.operation {
        let names = RecordKey::stored_operations(operation).map(|name| stored(&name).into_owned());
        term("r.operation = ANY (", ")", Value::Texts(names.into()));
    }
    let mut number = |words: &str, number: Option<i64>| {
        if let Some(number) = number {
            terms.push_str(&format!(" AND {words} {number}"));
        }
    };
    number("r.created_at >=", filter.created_from.map(Timestamp::as_millis));
    number("r.created_at <", filter.created_until.map(Timestamp::as_millis));
    number(if filter.oldest_first { "r.id <=" } else { "r.id >=" }, stop);
    // That a window is over is read off the time. States are spelt out, for only then can the planner tell that a partial index will do.
    let now = listing_now!();
    match filter.state {
        None => {}
        Some(State::Expired) => {
            terms.push_str(&format!(" AND (r.state = 'expired' OR r.expires_at <= {now})"))
        }
        Some(state) => {
            terms.push_str(&format!(" AND r.state = '{}'", state.as_str()));
            if state.is_final() {
                terms.push_str(&format!(" AND r.expires_at > {now}"));
            }
        }
    }
    if filter.state == Some(State::InProgress) {
        // All of these and no others wait for their lease, and there is an index of what records wait for.
        terms.push_str(" AND r.due_kind = 'lease'");
    }
    match filter.dead_letter {
        Some(true) => terms.push_str(" AND r.dead_letter"),
        Some(false) => terms.push_str(" AND NOT r.dead_letter"),
        None => {}
    }
    let columns = read_columns!();
    let (side, order) = if filter.oldest_first { (">", "") } else { ("<", " DESC") };
    let sql = format!(
        "SELECT {columns}, pg_is_in_recovery() FROM semel_records r WHERE r.id {side} $1{terms} ORDER BY r.id{order} LIMIT $2"
    );
    (sql, values)
}
