//! Stored records: SQLite's rows, the texts and headers that both stores spell alike, PostgreSQL's text, and sealed answers.
//!
//! The input is raw: a record, and what is done to it, are made of its bytes.

use crate::independent::record::read;
use crate::under_test::postgres_text;
use crate::under_test::sqlite::{SCHEMA, row, statements};
use arbitrary::Unstructured;
use bytes::Bytes;
use rusqlite::Connection;
use rusqlite::types::Value;
use semel::columns::{headers_json, headers_of, key_hash};
use semel::seal::{Keyring, SealingKey};
use semel::transition::Change;
use semel::{
    Body, Draft, Engine, Fingerprint, MemoryStore, OperationId, Origin, Owner, RecipeId, Record, RecordKey,
    Resource, State, StoredResponse, Times, Timestamp, When, check_draft,
};
use std::sync::LazyLock;

/// What is written is read again; what is damaged is an error, or exactly what the row says by then; a seal opens for its own record alone.
pub fn target(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Ok(record) = record(&mut input) else { return };
    texts(&mut input);
    headers(&mut input);
    let _ = sealed(&record, &mut input);
    let _ = in_sqlite(&record, &mut input);
}

type Made<T> = arbitrary::Result<T>;

fn record(input: &mut Unstructured<'_>) -> Made<Record> {
    let key = RecordKey::new(text(input)?, text(input)?, text(input)?);
    let times = Times {
        created: moment(input)?,
        lease: moment(input)?,
        completed: maybe(input, moment)?,
        body_expires: maybe(input, moment)?,
        expires: maybe(input, moment)?,
        purge: maybe(input, moment)?,
        reconcile: maybe(input, moment)?,
    };
    Ok(Record {
        key,
        operation_id: OperationId::from_bytes(input.arbitrary()?),
        fingerprint: Fingerprint(input.arbitrary()?),
        recipe: RecipeId(input.arbitrary()?),
        state: *input.choose(&State::ALL)?,
        version: input.arbitrary()?,
        attempt: input.arbitrary()?,
        owner: Owner::from_bytes(input.arbitrary()?),
        origin: *input.choose(&[Origin::First, Origin::Retry, Origin::Doubt])?,
        recovery_point: maybe(input, text)?,
        checkpoint: maybe(input, bytes)?,
        response: maybe(input, response)?,
        resource: maybe(input, |input| Ok(Resource { kind: text(input)?, id: text(input)? }))?,
        last_error: maybe(input, text)?,
        reconcile_attempts: input.arbitrary()?,
        dead_letter: input.ratio(1_u8, 4_u8)?,
        times,
    })
}

fn response(input: &mut Unstructured<'_>) -> Made<StoredResponse> {
    let body = match input.int_in_range(0..=4_u8)? {
        0 => Body::NotStored,
        1 => Body::Dropped,
        2 => Body::Sealed(bytes(input)?),
        _ => Body::Stored(bytes(input)?),
    };
    let count = input.int_in_range(0..=3_u8)?;
    let header = |input: &mut Unstructured<'_>| Ok((text(input)?, bytes(input)?));
    let headers = (0..count).map(|_| header(input)).collect::<Made<_>>()?;
    Ok(StoredResponse { status: input.arbitrary()?, headers, body, schema_version: maybe(input, text)? })
}

fn maybe<T>(
    input: &mut Unstructured<'_>,
    make: impl FnOnce(&mut Unstructured<'_>) -> Made<T>,
) -> Made<Option<T>> {
    if input.ratio(1_u8, 2_u8)? { make(input).map(Some) } else { Ok(None) }
}

fn text(input: &mut Unstructured<'_>) -> Made<String> {
    let length = usize::from(input.int_in_range(0..=12_u8)?).min(input.len());
    Ok(String::from_utf8_lossy(input.bytes(length)?).into_owned())
}

fn bytes(input: &mut Unstructured<'_>) -> Made<Bytes> {
    let length = usize::from(input.int_in_range(0..=40_u8)?).min(input.len());
    input.bytes(length).map(Bytes::copy_from_slice)
}

fn moment(input: &mut Unstructured<'_>) -> Made<Timestamp> {
    input.arbitrary().map(Timestamp::from_millis)
}

/// PostgreSQL holds every text but NUL: all come back, and no two are stored alike.
fn texts(input: &mut Unstructured<'_>) {
    let Ok(given) = text(input) else { return };
    let stored = postgres_text::stored(&given);
    assert!(!stored.contains('\0'));
    assert_eq!(postgres_text::original(&stored).as_deref(), Some(given.as_str()));
    // What the database can hold, that is.
    if !given.contains('\0')
        && let Some(meant) = postgres_text::original(&given)
    {
        assert_eq!(postgres_text::stored(&meant), given, "two spellings of one text");
    }
}

fn headers(input: &mut Unstructured<'_>) {
    let Ok(response) = response(input) else { return };
    let json = headers_json(&response.headers);
    assert!(!json.contains('\0'));
    assert_eq!(headers_of(&json), Some(response.headers));
    // And whatever else is in the column.
    let Ok(length) = input.int_in_range(0..=60_u8) else { return };
    let Ok(found) = input.bytes(usize::from(length).min(input.len())) else { return };
    if let Some(headers) = headers_of(&String::from_utf8_lossy(found)) {
        assert_eq!(headers_of(&headers_json(&headers)), Some(headers));
    }
}

static ENGINES: LazyLock<Option<[Engine; 2]>> = LazyLock::new(|| {
    let key = |name: &str, byte: u8| SealingKey::new(name, &[byte; 32]).ok();
    let sealing = Engine::new(MemoryStore::new());
    sealing.set_keyring(Keyring::new([key("new", 1)?, key("old", 2)?]).ok());
    let other = Engine::new(MemoryStore::new());
    other.set_keyring(Keyring::new([key("new", 3)?]).ok());
    Some([sealing, other])
});

/// What is sealed opens to what it was, in its own record, by its own key, and as long as nobody touched it.
fn sealed(record: &Record, input: &mut Unstructured<'_>) -> Made<()> {
    let Some([engine, other]) = ENGINES.as_ref() else { unreachable!("the keys of the fuzzer are right") };
    // Bytes that only look like sealed ones are damage, whatever they are.
    if let Ok(opened) = engine.open(record.clone()) {
        let still = opened.response.as_ref().map(|response| &response.body);
        assert!(!matches!(still, Some(Body::Sealed(_))));
    }
    let mut plain = record.clone();
    plain.version = 1;
    if let Some(response) = &mut plain.response {
        response.body = match std::mem::replace(&mut response.body, Body::NotStored) {
            Body::Sealed(bytes) => Body::Stored(bytes),
            other => other,
        };
        // Without a body nobody replays the headers: they are not kept.
        if !response.body.is_kept() {
            response.headers.clear();
        }
    }
    let begins_as_sealed =
        |bytes: &Bytes| semel::seal::sealed_by(bytes).is_some() || bytes.starts_with(b"\0semel");
    if plain.checkpoint.as_ref().is_some_and(begins_as_sealed) {
        return Ok(());
    }
    let change = engine.rewritten(&plain);
    let keeps = plain.checkpoint.is_some() || plain.response.as_ref().is_some_and(|kept| kept.body.is_kept());
    let Ok(Some(Change::Put { next, .. })) = change else {
        assert!(!keeps, "{change:?}");
        return Ok(());
    };
    let stored = next.at(Timestamp::from_millis(0));
    assert!(keeps);
    let opened = engine.open(stored.clone());
    assert_eq!(opened.as_ref().ok(), Some(&Record { version: 2, ..plain.clone() }), "{opened:?}");
    assert!(other.open(stored.clone()).is_err(), "another key of the same name opened it");
    let mut damaged = stored.clone();
    let what = damage(&mut damaged, input)?;
    if damaged != stored {
        assert!(engine.open(damaged).is_err(), "it opened, with another {what}");
    }
    Ok(())
}

/// Changes something that the seal covers.
fn damage(record: &mut Record, input: &mut Unstructured<'_>) -> Made<&'static str> {
    let covers_answer = record.response.as_ref().is_some_and(|kept| matches!(kept.body, Body::Sealed(_)));
    let which = input.int_in_range(0..=9_u8)?;
    Ok(match which {
        0 => {
            record.key.tenant = text(input)?.into();
            "tenant"
        }
        1 => {
            record.key.operation = text(input)?.into();
            "operation"
        }
        2 => {
            record.key.key = text(input)?.into();
            "key"
        }
        3 => {
            record.operation_id = OperationId::from_bytes(input.arbitrary()?);
            "operation id"
        }
        4 => {
            record.fingerprint.0[usize::from(input.int_in_range(0..=31_u8)?)] ^= input.arbitrary::<u8>()?;
            "fingerprint"
        }
        5 => {
            record.recipe.0[usize::from(input.int_in_range(0..=15_u8)?)] ^= input.arbitrary::<u8>()?;
            "recipe"
        }
        _ if covers_answer => {
            let Some(response) = &mut record.response else { return Ok("nothing") };
            match which {
                6 => {
                    response.status = input.arbitrary()?;
                    "status"
                }
                7 => {
                    response.schema_version = maybe(input, text)?;
                    "schema version"
                }
                8 => {
                    response.headers.push((text(input)?, bytes(input)?));
                    "header beside the seal"
                }
                _ => {
                    if let Body::Sealed(sealed) = &mut response.body {
                        flip(sealed, input)?;
                    }
                    "body"
                }
            }
        }
        6 | 7 if record.recovery_point.is_some() => {
            record.recovery_point = Some(text(input)?);
            "recovery point"
        }
        _ => {
            if let Some(checkpoint) = &mut record.checkpoint {
                // The first bytes say that it is sealed: without them it is a plain one, which is believed unless that is refused.
                let from = 8.min(checkpoint.len());
                flip_from(checkpoint, from, input)?;
            }
            "checkpoint"
        }
    })
}

fn flip(bytes: &mut Bytes, input: &mut Unstructured<'_>) -> Made<()> {
    flip_from(bytes, 0, input)
}

/// Flips some bits, or cuts off the end.
fn flip_from(bytes: &mut Bytes, from: usize, input: &mut Unstructured<'_>) -> Made<()> {
    let mut changed = bytes.to_vec();
    let span = changed.len().saturating_sub(from).max(1);
    let at = from + usize::from(input.arbitrary::<u16>()?) % span;
    match input.arbitrary::<u8>()? {
        0 => changed.truncate(at),
        bits => {
            if let Some(byte) = changed.get_mut(at) {
                *byte ^= bits;
            }
        }
    }
    *bytes = changed.into();
    Ok(())
}

thread_local! {
    static SQLITE: Option<Connection> = {
        let connection = Connection::open_in_memory().ok();
        connection.filter(|connection| {
            connection.set_prepared_statement_cache_capacity(64);
            SCHEMA.iter().all(|schema| connection.execute_batch(schema).is_ok())
                && connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").is_ok()
        })
    };
}

/// The columns that a record is read from.
const COLUMNS: &str = row::columns!();

/// Writes a record as the store does, damages its row, and reads it as the store does.
fn in_sqlite(record: &Record, input: &mut Unstructured<'_>) -> Made<()> {
    let now = Timestamp::from_millis(0);
    let draft: Draft = draft_of(record);
    if check_draft(&draft).is_err() {
        return Ok(());
    }
    SQLITE.with(|connection| {
        let Some(connection) = connection else { unreachable!("a database in memory") };
        for table in ["semel_records", "semel_answers"] {
            let emptied = connection
                .prepare_cached(&format!("DELETE FROM {table}"))
                .and_then(|mut all| all.execute([]));
            assert!(emptied.is_ok());
        }
        let created = statements::create(
            connection,
            std::slice::from_ref(&draft),
            &[key_hash(&record.key)],
            now.into(),
        );
        assert!(created.is_ok(), "{:?}", created.err());
        let found = statements::find(connection, record.operation_id);
        match record.check() {
            Ok(()) => assert_eq!(found.ok().flatten().as_ref(), Some(record)),
            Err(broken) => assert!(found.is_err(), "{broken}"),
        }
        for _ in 0..input.int_in_range(1..=3_u8)? {
            overwrite(connection, input)?;
        }
        let sql = format!("SELECT {COLUMNS} FROM semel_records r");
        let prepared = [sql.as_str(), "SELECT headers, body FROM semel_answers"]
            .map(|sql| connection.prepare_cached(sql));
        let [Ok(mut records), Ok(mut answers)] = prepared else { unreachable!("the columns are there") };
        let (Ok(mut records), Ok(mut answers)) = (records.query([]), answers.query([])) else {
            unreachable!("rows were written")
        };
        // Whatever has become of the times that an answer is found by.
        if let (Ok(Some(found)), Ok(answer)) = (records.next(), answers.next()) {
            let mut values: Vec<Value> = (0..30).filter_map(|at| found.get(at).ok()).collect();
            for at in 0..2 {
                values.extend(answer.map_or(Some(Value::Null), |answer| answer.get(at).ok()));
            }
            let decoded = row::decode(found, row::kept_apart(answer));
            let expected = if values.len() == 32 { read(&values) } else { None };
            assert_eq!(decoded.as_ref().ok(), expected.as_ref(), "{values:?}");
        }
        Ok(())
    })
}

fn draft_of(record: &Record) -> Draft {
    let record = record.clone();
    Draft {
        key: record.key,
        operation_id: record.operation_id,
        fingerprint: record.fingerprint,
        recipe: record.recipe,
        state: record.state,
        version: record.version,
        attempt: record.attempt,
        owner: record.owner,
        origin: record.origin,
        recovery_point: record.recovery_point,
        checkpoint: record.checkpoint,
        response: record.response,
        resource: record.resource,
        last_error: record.last_error,
        reconcile_attempts: record.reconcile_attempts,
        dead_letter: record.dead_letter,
        times: record.times.map(When::At),
    }
}

/// Puts something else into a column, as far as SQLite allows it.
fn overwrite(connection: &Connection, input: &mut Unstructured<'_>) -> Made<()> {
    let of_records = COLUMNS.split(", ").map(str::trim).filter_map(|column| column.strip_prefix("r."));
    let of_records = of_records.filter(|column| *column != "id").map(|column| ("semel_records", column));
    let of_answers = ["headers", "body"].map(|column| ("semel_answers", column));
    let columns: Vec<(&str, &str)> = of_records.chain(of_answers).collect();
    let (table, column) = input.choose(&columns)?;
    let value = match input.int_in_range(0..=7_u8)? {
        0 => Value::Null,
        1 => Value::Integer(input.arbitrary()?),
        2 => Value::Integer(i64::from(input.arbitrary::<u8>()?)),
        3 => Value::Text(text(input)?),
        4 => Value::Blob(bytes(input)?.to_vec()),
        5 => Value::Text((*input.choose(&WORDS)?).to_owned()),
        6 => Value::Real(input.arbitrary()?),
        _ => Value::Blob(input.bytes(16.min(input.len()))?.to_vec()),
    };
    let sql = format!("UPDATE {table} SET {column} = ?1");
    if let Ok(mut statement) = connection.prepare_cached(&sql) {
        // A strict table refuses what is of another type.
        let _refused = statement.execute([value]);
    }
    Ok(())
}

const WORDS: [&str; 16] = [
    "in_progress",
    "completed",
    "failed_replayable",
    "failed_retryable",
    "unknown",
    "expired",
    "first",
    "retry",
    "doubt",
    "stored",
    "sealed",
    "not_stored",
    "dropped",
    "omitted",
    "[]",
    "[[\"a\",[1,2]]]",
];
