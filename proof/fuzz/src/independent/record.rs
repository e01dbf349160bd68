//! A record as the columns of its row say it.

use super::json::Json;
use bytes::Bytes;
use rusqlite::types::Value;
use semel::{
    Body, Fingerprint, OperationId, Origin, Owner, RecipeId, Record, RecordKey, Resource, State,
    StoredResponse, Times, Timestamp,
};

/// The record, if every column holds what it may, and all of them together say something that can be.
pub(crate) fn read(columns: &[Value]) -> Option<Record> {
    let state = match text(&columns[6])?.as_str() {
        "in_progress" => State::InProgress,
        "completed" => State::Completed,
        "failed_replayable" => State::FailedReplayable,
        "failed_retryable" => State::FailedRetryable,
        "unknown" => State::Unknown,
        "expired" => State::Expired,
        _ => return None,
    };
    let origin = match text(&columns[10])?.as_str() {
        "first" => Origin::First,
        "retry" => Origin::Retry,
        "doubt" => Origin::Doubt,
        _ => return None,
    };
    let resource = match (maybe(&columns[23], text)?, maybe(&columns[24], text)?) {
        (Some(kind), Some(id)) => Some(Resource { kind, id }),
        (None, None) => None,
        _ => return None,
    };
    let record = Record {
        key: RecordKey::from_stored(text(&columns[1])?, text(&columns[2])?, text(&columns[3])?),
        operation_id: OperationId::from_bytes(bytes(&columns[0])?.try_into().ok()?),
        fingerprint: Fingerprint(bytes(&columns[4])?.try_into().ok()?),
        recipe: RecipeId(bytes(&columns[5])?.try_into().ok()?),
        state,
        version: u64::try_from(integer(&columns[7])?).ok()?,
        attempt: u32::try_from(integer(&columns[8])?).ok()?,
        owner: Owner::from_bytes(bytes(&columns[9])?.try_into().ok()?),
        origin,
        times: Times {
            created: moment(&columns[11])?,
            lease: moment(&columns[12])?,
            completed: maybe(&columns[13], moment)?,
            body_expires: maybe(&columns[14], moment)?,
            expires: maybe(&columns[15], moment)?,
            purge: maybe(&columns[16], moment)?,
            reconcile: maybe(&columns[17], moment)?,
        },
        reconcile_attempts: u32::try_from(integer(&columns[18])?).ok()?,
        dead_letter: match integer(&columns[19])? {
            0 => false,
            1 => true,
            _ => return None,
        },
        last_error: maybe(&columns[20], text)?,
        recovery_point: maybe(&columns[21], text)?,
        checkpoint: maybe(&columns[22], bytes)?.map(Bytes::from),
        response: response(&columns[25..29], &columns[30], &columns[31])?,
        resource,
    };
    record.check().is_ok().then_some(record)
}

/// All of an answer, or nothing of it. Headers and body are kept apart: without them there were none, or they were dropped.
fn response(columns: &[Value], headers_apart: &Value, body_apart: &Value) -> Option<Option<StoredResponse>> {
    if columns.iter().all(|column| *column == Value::Null) {
        return Some(None);
    }
    let (schema_version, kind) = (maybe(&columns[1], text)?, text(&columns[2])?);
    let status = u16::try_from(integer(&columns[0])?).ok()?;
    let sum = i32::try_from(integer(&columns[3])?).ok()?;
    let adds_up = |headers: &str, body: Option<&[u8]>| {
        let schema = schema_version.as_deref().map(str::as_bytes);
        let mut summed = status.to_le_bytes().to_vec();
        for part in [Some(headers.as_bytes()), schema, Some(kind.as_bytes()), body] {
            summed.extend(part.map_or([0xff; 8], |part| (part.len() as u64).to_le_bytes()));
            summed.extend(part.unwrap_or_default());
        }
        sum == crc_32(&summed).cast_signed()
    };
    let (apart, body) = (maybe(headers_apart, text)?, maybe(body_apart, bytes)?);
    let (headers, body, dropped) = match apart {
        Some(spelt) if adds_up(&spelt, body.as_deref()) => (headers(&spelt)?, body, false),
        // Of an answer before this one.
        Some(_) if adds_up("[]", None) => (vec![], None, false),
        Some(_) => return None,
        None => (vec![], None, true),
    };
    let body = match (kind.as_str(), body) {
        ("stored" | "sealed", None) if dropped => Body::Dropped,
        ("stored", Some(bytes)) => Body::Stored(bytes.into()),
        ("sealed", Some(bytes)) => Body::Sealed(bytes.into()),
        ("not_stored", None) => Body::NotStored,
        ("dropped", None) => Body::Dropped,
        _ => return None,
    };
    Some(Some(StoredResponse { status, headers, body, schema_version }))
}

/// By the definition, bit by bit.
fn crc_32(bytes: &[u8]) -> u32 {
    let mut rest = u32::MAX;
    for byte in bytes {
        rest ^= u32::from(*byte);
        for _ in 0..8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ 0xedb8_8320 } else { rest >> 1 };
        }
    }
    !rest
}

/// `[["name", "value"], ["name", [1, 2]]]`
fn headers(json: &str) -> Option<Vec<(String, Bytes)>> {
    let Json::Array(pairs) = Json::parse(json.as_bytes(), 100)? else { return None };
    let mut headers = Vec::new();
    for pair in pairs {
        let Json::Array(pair) = pair else { return None };
        let [Json::String(name), value] = &pair[..] else { return None };
        let value = match value {
            Json::String(text) => Bytes::from(text.clone()),
            Json::Array(items) => items.iter().map(byte).collect::<Option<Vec<u8>>>()?.into(),
            _ => return None,
        };
        headers.push((name.clone(), value));
    }
    Some(headers)
}

fn byte(item: &Json) -> Option<u8> {
    let Json::Number(number) = item else { return None };
    number.byte()
}

fn text(value: &Value) -> Option<String> {
    if let Value::Text(text) = value { Some(text.clone()) } else { None }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    if let Value::Blob(bytes) = value { Some(bytes.clone()) } else { None }
}

fn integer(value: &Value) -> Option<i64> {
    if let Value::Integer(integer) = value { Some(*integer) } else { None }
}

fn moment(value: &Value) -> Option<Timestamp> {
    integer(value).map(Timestamp::from_millis)
}

/// Nothing where the column is empty; else what it holds, if it holds that.
fn maybe<T>(value: &Value, read: impl Fn(&Value) -> Option<T>) -> Option<Option<T>> {
    if *value == Value::Null { Some(None) } else { read(value).map(Some) }
}
