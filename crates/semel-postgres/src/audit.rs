//! The audit: what is bound of an entry, and listings.

use crate::call::Server;
use crate::draft::PgQuery;
use crate::read::not_on_a_standby;
use crate::row::decode_audit;
use crate::statements::listing_now;
use crate::text::stored;
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::{DamageLog, StoreError, Timestamp};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

/// Binds the columns of an entry, but for its time.
pub(crate) fn bind_entry<'q>(query: PgQuery<'q>, entry: &'q AuditEntry) -> PgQuery<'q> {
    let text = |text: &'q Option<String>| text.as_deref().map(stored);
    query
        .bind(Uuid::from(entry.id))
        .bind(stored(&entry.actor))
        .bind(entry.action.as_str())
        .bind(entry.result.as_str())
        .bind(text(&entry.target))
        .bind(text(&entry.tenant))
        .bind(text(&entry.operation))
        // JSON escapes what PostgreSQL's text cannot hold.
        .bind(entry.details.to_json())
}

/// Appends an entry to the audit in the open transaction of `conn`, beside the change that it is about. Works behind any pooler.
///
/// # Errors
/// Nothing was appended.
pub async fn audit_in(conn: &mut PgConnection, entry: &AuditEntry) -> Result<(), sqlx::Error> {
    const SQL: &str = concat!(
        "INSERT INTO semel_audit (entry_id, actor, action, result, target, tenant, operation, details, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, ",
        listing_now!(),
        ")"
    );
    bind_entry(sqlx::query(SQL).persistent(false), entry).execute(conn).await.map(drop)
}

/// One page, newest first.
pub(crate) async fn list(
    server: &Server,
    filter: &AuditFilter,
    from: Option<&AuditCursor>,
    limit: usize,
    damage: &DamageLog,
) -> Result<AuditPage, StoreError> {
    let elsewhere = || StoreError::Unavailable("a cursor from elsewhere".into());
    let place = match from {
        None => (i64::MAX, i64::MAX),
        Some(from) => from.place().map(|(at, number)| (at.as_millis(), number)).ok_or_else(elsewhere)?,
    };
    let (sql, texts) = list_sql(filter);
    // The SQL text is fixed and values are bound. Planned each time: the best index depends on the values.
    let mut statement = sqlx::query(AssertSqlSafe(sql)).persistent(false).bind(place.0).bind(place.1);
    // One more than requested shows whether there is another page.
    statement = statement.bind(i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1));
    for text in texts {
        statement = statement.bind(text);
    }
    let rows = server.look(statement).await?;
    rows.first().map_or(Ok(()), |row| not_on_a_standby(row, 10))?;
    let mut page = AuditPage { lines: Vec::new(), damaged: 0, next: None };
    let mut last = None;
    for row in &rows {
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
        let unreadable = |error: sqlx::Error| StoreError::Damaged(error.to_string());
        let (at, number) = (row.try_get(0).map_err(unreadable)?, row.try_get(9).map_err(unreadable)?);
        last = Some(AuditCursor::at(Timestamp::from_millis(at), number));
    }
    Ok(page)
}

/// The statement of a listing, and the texts that its filter binds: parameters 4 and on, after the place to begin before and the limit.
pub(crate) fn list_sql(filter: &AuditFilter) -> (String, Vec<String>) {
    let (mut terms, mut texts) = (String::new(), Vec::new());
    let mut term = |words: &str, text: Option<&str>| {
        if let Some(text) = text {
            texts.push(stored(text).into_owned());
            terms.push_str(&format!(" AND {words} ${}", texts.len() + 3));
        }
    };
    term("target =", filter.target.as_deref());
    term("tenant =", filter.tenant.as_deref());
    term("actor =", filter.actor.as_deref());
    term("operation =", filter.operation.as_deref());
    term("action =", filter.action.map(|action| action.as_str()));
    term("result =", filter.result.map(|result| result.as_str()));
    let mut moment = |words: &str, moment: Option<Timestamp>| {
        if let Some(moment) = moment {
            terms.push_str(&format!(" AND at {words} {}", moment.as_millis()));
        }
    };
    moment(">=", filter.from);
    moment("<", filter.until);
    let sql = format!(
        "SELECT at, entry_id, actor, action, result, target, tenant, operation, details, sequence, pg_is_in_recovery()
FROM semel_audit WHERE (at, sequence) < ($1, $2){terms} ORDER BY at DESC, sequence DESC LIMIT $3"
    );
    (sql, texts)
}
