//! A record as a row, and back.

use crate::text::original;
use bytes::Bytes;
use semel::audit::{AuditAction, AuditDetails, AuditEntry, AuditLine, AuditResult};
use semel::columns::{Apart, answer_of};
use semel::{
    Actor, Fingerprint, Happening, HistoryEntry, HistoryLine, OperationId, Origin, Owner, RecipeId, Record,
    RecordKey, Resource, State, StoreError, Times, Timestamp,
};
use sqlx::postgres::PgRow;
use sqlx::{Column, Decode, Postgres, Row, Type, ValueRef as _};
use uuid::Uuid;

/// Where a record's columns end: what follows is the statement's own.
pub(crate) const AFTER_RECORD: usize = 30;

/// The indexes of the answer's headers and body in a row that was read with them: after the statement's now and one flag.
const HEADERS: usize = AFTER_RECORD + 2;
const BODY: usize = HEADERS + 1;

/// What a record was asked for by, where it was.
pub(crate) const NAME: usize = BODY + 1;

/// The record in `row`, if there is one. `with_answer` says whether the row was read with headers and body of its answer.
pub(crate) fn decode(row: &PgRow, with_answer: bool) -> Result<Option<Record>, StoreError> {
    let columns = Columns(row);
    let id: Option<Uuid> = columns.at(0).map_err(StoreError::Damaged)?;
    let Some(id) = id.map(OperationId::from) else { return Ok(None) };
    let record = decode_columns(&columns, id, with_answer).map_err(|what| damaged(id, &what))?;
    record.check().map_err(|what| damaged(id, what))?;
    Ok(Some(record))
}

/// The row's own number, by which listings are paged.
pub(crate) fn row_number(row: &PgRow) -> Result<i64, StoreError> {
    Columns(row).at(29).map_err(StoreError::Damaged)
}

/// A value that the statement itself computed.
pub(crate) fn computed<'r, T: Decode<'r, Postgres> + Type<Postgres>>(
    row: &'r PgRow,
    index: usize,
) -> Result<T, StoreError> {
    row.try_get(index)
        .map_err(|error| StoreError::Damaged(format!("the server returned an unreadable value: {error}")))
}

fn decode_columns(
    columns: &Columns<'_>,
    operation_id: OperationId,
    with_answer: bool,
) -> Result<Record, String> {
    let response = match columns.at::<Option<i32>>(25)? {
        None => columns.nothing_in(&[26, 27, 28]).map(|()| None)?,
        Some(status) => {
            let status = u16::try_from(status).map_err(|_| columns.wrong(25))?;
            let (schema, kind, sum) = (columns.text(26)?, columns.at(27)?, columns.at(28)?);
            let apart = if with_answer { kept_apart(columns)? } else { Apart::NotRead };
            Some(answer_of(status, schema, kind, sum, apart)?)
        }
    };
    let resource = match (columns.text(23)?, columns.text(24)?) {
        (Some(kind), Some(id)) => Some(Resource { kind, id }),
        (None, None) => None,
        _ => return Err("incomplete resource".into()),
    };
    let name = |index| columns.text(index)?.ok_or_else(|| columns.wrong(index));
    let moment = |index| Ok::<_, String>(columns.at::<Option<i64>>(index)?.map(Timestamp::from_millis));
    let count = |index| u32::try_from(columns.at::<i64>(index)?).map_err(|_| columns.wrong(index));
    let uuid = |index| columns.at::<Uuid>(index);
    Ok(Record {
        key: RecordKey::from_stored(name(1)?, name(2)?, name(3)?),
        operation_id,
        fingerprint: Fingerprint(columns.at::<&[u8]>(4)?.try_into().map_err(|_| columns.wrong(4))?),
        recipe: RecipeId(*uuid(5)?.as_bytes()),
        state: columns.parsed(6, State::from_name)?,
        version: columns.version(7)?,
        attempt: count(8)?,
        owner: Owner::from(uuid(9)?),
        origin: columns.parsed(10, Origin::from_name)?,
        times: Times {
            created: Timestamp::from_millis(columns.at(11)?),
            lease: Timestamp::from_millis(columns.at(12)?),
            completed: moment(13)?,
            body_expires: moment(14)?,
            expires: moment(15)?,
            purge: moment(16)?,
            reconcile: moment(17)?,
        },
        reconcile_attempts: count(18)?,
        dead_letter: columns.at(19)?,
        last_error: columns.text(20)?,
        recovery_point: columns.text(21)?,
        checkpoint: columns.bytes(22)?,
        response,
        resource,
    })
}

fn kept_apart<'r>(columns: &Columns<'r>) -> Result<Apart<'r>, String> {
    let headers: Option<&str> = columns.at(HEADERS)?;
    Ok(match headers {
        None => Apart::Nothing,
        Some(headers) => Apart::Kept(headers, columns.at(BODY)?),
    })
}

/// The line of history in `row`: at, version, happening, actor, attempt, note.
pub(crate) fn decode_history(row: &PgRow, id: OperationId) -> Result<HistoryLine, StoreError> {
    let columns = Columns(row);
    let line = || -> Result<HistoryLine, String> {
        let actor = columns.text(3)?.and_then(|name| Actor::from_name(&name));
        Ok(HistoryLine {
            at: Timestamp::from_millis(columns.at(0)?),
            version: columns.version(1)?,
            entry: HistoryEntry {
                happening: columns.parsed(2, Happening::from_name)?,
                actor: actor.ok_or_else(|| columns.wrong(3))?,
                attempt: u32::try_from(columns.at::<i64>(4)?).map_err(|_| columns.wrong(4))?,
                note: columns.text(5)?,
            },
        })
    };
    line().map_err(|what| damaged(id, &format!("in its history, {what}")))
}

/// The entry of the audit in `row`.
pub(crate) fn decode_audit(row: &PgRow) -> Result<AuditLine, StoreError> {
    let columns = Columns(row);
    let line = || -> Result<AuditLine, String> {
        Ok(AuditLine {
            at: Timestamp::from_millis(columns.at(0)?),
            entry: AuditEntry {
                id: columns.at::<Uuid>(1)?.into(),
                actor: columns.text(2)?.ok_or_else(|| columns.wrong(2))?,
                action: columns.parsed(3, AuditAction::from_name)?,
                result: columns.parsed(4, AuditResult::from_name)?,
                target: columns.text(5)?,
                tenant: columns.text(6)?,
                operation: columns.text(7)?,
                details: AuditDetails::from_json(columns.at(8)?).map_err(|_| columns.wrong(8))?,
            },
        })
    };
    let number = columns.at::<i64>(9).unwrap_or(-1);
    line().map_err(|what| StoreError::Damaged(format!("entry {number} of the audit: {what}")))
}

pub(crate) fn damaged(id: OperationId, what: &str) -> StoreError {
    StoreError::Damaged(format!("operation {id}: {what}"))
}

/// A row whose contents are validated. Errors name the column only: contents stay out of them.
struct Columns<'r>(&'r PgRow);

impl<'r> Columns<'r> {
    fn at<T: Decode<'r, Postgres> + Type<Postgres>>(&self, index: usize) -> Result<T, String> {
        self.0.try_get(index).map_err(|_| self.wrong(index))
    }

    /// A response is there as a whole or not at all: what is left of one is damage.
    fn nothing_in(&self, indexes: &[usize]) -> Result<(), String> {
        let is_filled = |index: &&usize| !self.0.try_get_raw(**index).is_ok_and(|value| value.is_null());
        indexes.iter().find(is_filled).map_or(Ok(()), |index| Err(self.wrong(*index)))
    }

    fn version(&self, index: usize) -> Result<u64, String> {
        u64::try_from(self.at::<i64>(index)?).map_err(|_| self.wrong(index))
    }

    fn bytes(&self, index: usize) -> Result<Option<Bytes>, String> {
        Ok(self.at::<Option<&[u8]>>(index)?.map(Bytes::copy_from_slice))
    }

    fn text(&self, index: usize) -> Result<Option<String>, String> {
        let stored: Option<&str> = self.at(index)?;
        stored.map(|stored| original(stored).ok_or_else(|| self.wrong(index))).transpose()
    }

    fn parsed<T>(&self, index: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        parse(self.at(index)?).ok_or_else(|| self.wrong(index))
    }

    fn wrong(&self, index: usize) -> String {
        let name = self.0.columns().get(index).map_or("a column", |column| column.name());
        format!("invalid {name}")
    }
}
