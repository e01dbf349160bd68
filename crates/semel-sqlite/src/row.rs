//! A record as a row, and back.

use crate::error::damaged;
use bytes::Bytes;
use rusqlite::Row;
use rusqlite::types::{FromSql, Type, ValueRef};
use semel::audit::{AuditAction, AuditDetails, AuditEntry, AuditId, AuditLine, AuditResult};
use semel::columns::{Apart, answer_of};
use semel::{
    Actor, Fingerprint, Happening, HistoryEntry, HistoryLine, OperationId, Origin, Owner, RecipeId, Record,
    RecordKey, Resource, State, StoreError, Times, Timestamp,
};

/// The columns that [`decode`] reads of the record `r`, in its order.
macro_rules! columns {
    () => {
        "r.operation_id, r.tenant, r.operation, r.key, r.fingerprint, r.recipe, r.state, r.version, r.attempt, r.owner, \
         r.origin, r.created_at, r.lease_until, r.completed_at, r.body_expires_at, r.expires_at, r.purge_at, \
         r.reconcile_at, r.reconcile_attempts, r.dead_letter, r.last_error, r.recovery_point, r.checkpoint, \
         r.resource_type, r.resource_id, r.response_status, r.response_schema, r.body_kind, r.response_sum, r.id"
    };
}
pub(crate) use columns;

const ROW: usize = 29;

/// Where the answer of the record in `row` is kept, if it has one: when it ends, and the operation id.
pub(crate) fn place_of_answer(row: &Row<'_>) -> Option<(i64, [u8; 16])> {
    row.get::<_, Option<i64>>(25).ok()??;
    let moment = |index| row.get::<_, Option<i64>>(index).ok().flatten();
    Some((moment(14).or_else(|| moment(15))?, row.get(0).ok()?))
}

/// The contents of a row of `semel_answers`, if there is one.
///
/// # Errors
/// It holds something else.
pub(crate) fn kept_apart<'r>(row: Option<&'r Row<'_>>) -> Result<Apart<'r>, String> {
    let Some(columns) = row.map(Columns) else { return Ok(Apart::Nothing) };
    Ok(Apart::Kept(columns.text(0)?, columns.bytes(1)?))
}

/// The record in `row`, and what was read of its answer.
pub(crate) fn decode(row: &Row<'_>, answer: Result<Apart<'_>, String>) -> Result<Record, StoreError> {
    let id = row.get(0).map(OperationId::from_bytes).map_err(|_| {
        StoreError::Damaged(format!("row {}: invalid operation id", row.get::<_, i64>(ROW).unwrap_or(-1)))
    })?;
    let record = decode_columns(row, id, answer).map_err(|what| damaged(id, &what))?;
    record.check().map_err(|what| damaged(id, what))?;
    Ok(record)
}

/// The row's own number, by which listings are paged.
pub(crate) fn row_number(row: &Row<'_>) -> Result<i64, StoreError> {
    row.get(ROW).map_err(|error| StoreError::Damaged(error.to_string()))
}

fn decode_columns(
    row: &Row<'_>,
    operation_id: OperationId,
    apart: Result<Apart<'_>, String>,
) -> Result<Record, String> {
    let columns = Columns(row);
    let response = match columns.at(25)? {
        None => columns.nothing_in(&[26, 27, 28]).map(|()| None)?,
        Some(status) => {
            let (schema, kind, sum) = (columns.at(26)?, columns.text(27)?, columns.at(28)?);
            Some(answer_of(status, schema, kind, sum, apart?)?)
        }
    };
    let resource = match (columns.at(23)?, columns.at(24)?) {
        (Some(kind), Some(id)) => Some(Resource { kind, id }),
        (None, None) => None,
        _ => return Err("incomplete resource".into()),
    };
    Ok(Record {
        key: RecordKey::from_stored(columns.text(1)?, columns.text(2)?, columns.text(3)?),
        operation_id,
        fingerprint: Fingerprint(columns.at(4)?),
        recipe: RecipeId(columns.at(5)?),
        state: columns.parsed(6, State::from_name)?,
        version: columns.version(7)?,
        attempt: columns.at(8)?,
        owner: Owner::from_bytes(columns.at(9)?),
        origin: columns.parsed(10, Origin::from_name)?,
        times: Times {
            created: Timestamp::from_millis(columns.at(11)?),
            lease: Timestamp::from_millis(columns.at(12)?),
            completed: columns.moment(13)?,
            body_expires: columns.moment(14)?,
            expires: columns.moment(15)?,
            purge: columns.moment(16)?,
            reconcile: columns.moment(17)?,
        },
        reconcile_attempts: columns.at(18)?,
        dead_letter: columns.flag(19)?,
        last_error: columns.at(20)?,
        recovery_point: columns.at(21)?,
        checkpoint: columns.at::<Option<Vec<u8>>>(22)?.map(Bytes::from),
        response,
        resource,
    })
}

/// The line of history in `row`: at, version, happening, actor, attempt, note.
pub(crate) fn decode_history(row: &Row<'_>, id: OperationId) -> Result<HistoryLine, StoreError> {
    let columns = Columns(row);
    let line = || -> Result<HistoryLine, String> {
        Ok(HistoryLine {
            at: Timestamp::from_millis(columns.at(0)?),
            version: columns.version(1)?,
            entry: HistoryEntry {
                happening: columns.parsed(2, Happening::from_name)?,
                actor: columns.parsed(3, Actor::from_name)?,
                attempt: columns.at(4)?,
                note: columns.at(5)?,
            },
        })
    };
    line().map_err(|what| damaged(id, &format!("in its history, {what}")))
}

/// The entry of the audit in `row`.
pub(crate) fn decode_audit(row: &Row<'_>) -> Result<AuditLine, StoreError> {
    let columns = Columns(row);
    let line = || -> Result<AuditLine, String> {
        Ok(AuditLine {
            at: Timestamp::from_millis(columns.at(0)?),
            entry: AuditEntry {
                id: AuditId::from_bytes(columns.at(1)?),
                actor: columns.at(2)?,
                action: columns.parsed(3, AuditAction::from_name)?,
                result: columns.parsed(4, AuditResult::from_name)?,
                target: columns.at(5)?,
                tenant: columns.at(6)?,
                operation: columns.at(7)?,
                details: AuditDetails::from_json(columns.text(8)?).map_err(|_| columns.wrong(8))?,
            },
        })
    };
    let number = row.get::<_, i64>(9).unwrap_or(-1);
    line().map_err(|what| StoreError::Damaged(format!("entry {number} of the audit: {what}")))
}

/// A row whose contents are validated. Errors name the column only: contents stay out of them.
struct Columns<'r, 's>(&'r Row<'s>);

impl<'r> Columns<'r, '_> {
    fn at<T: FromSql>(&self, index: usize) -> Result<T, String> {
        self.0.get(index).map_err(|_| self.wrong(index))
    }

    /// A response is there as a whole or not at all: what is left of one is damage.
    fn nothing_in(&self, indexes: &[usize]) -> Result<(), String> {
        let filled = indexes.iter().find(|index| !matches!(self.0.get_ref(**index), Ok(ValueRef::Null)));
        filled.map_or(Ok(()), |index| Err(self.wrong(*index)))
    }

    fn flag(&self, index: usize) -> Result<bool, String> {
        match self.at(index)? {
            0_i64 => Ok(false),
            1 => Ok(true),
            _ => Err(self.wrong(index)),
        }
    }

    fn version(&self, index: usize) -> Result<u64, String> {
        u64::try_from(self.at::<i64>(index)?).map_err(|_| self.wrong(index))
    }

    fn moment(&self, index: usize) -> Result<Option<Timestamp>, String> {
        Ok(self.at::<Option<i64>>(index)?.map(Timestamp::from_millis))
    }

    fn bytes(&self, index: usize) -> Result<Option<&'r [u8]>, String> {
        let value = self.0.get_ref(index).map_err(|_| self.wrong(index))?;
        value.as_blob_or_null().map_err(|_| self.wrong(index))
    }

    fn text(&self, index: usize) -> Result<&'r str, String> {
        let value = self.0.get_ref(index).map_err(|_| self.wrong(index))?;
        value.as_str().map_err(|_| self.wrong(index))
    }

    fn parsed<T>(&self, index: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T, String> {
        parse(self.text(index)?).ok_or_else(|| self.wrong(index))
    }

    fn wrong(&self, index: usize) -> String {
        let name = self.0.as_ref().column_name(index).unwrap_or("a column");
        let found = self.0.get_ref(index).map_or(Type::Null, |value: ValueRef<'_>| value.data_type());
        format!("invalid {name} ({found})")
    }
}

/// A version as SQLite keeps it. One beyond what it can count to is never written, so that looking for it finds nothing.
pub(crate) fn stored_version(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}
