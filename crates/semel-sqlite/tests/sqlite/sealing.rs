//! Sealed answers in a file that somebody can read and write.

use crate::fixture::{Place, complete, create, draft, read};
use rusqlite::{Connection, OptionalExtension as _, params};
use semel::columns::answer_sum;
use semel::transition::Claim;
use semel::{Body, Engine, EngineOptions, Outcome, Policy, RecordKey};
use semel_conformance::{CANARY, Tampering, sealing_keys, what_is_sealed_stands_no_tampering};
use std::sync::Arc;

/// As somebody does who knows that there is a sum.
fn tamper_and_add_up(conn: &Connection, key: &RecordKey, tampering: &Tampering) {
    tamper(conn, key, tampering);
    let sql = "SELECT response_status, headers, response_schema, body_kind, body
        FROM semel_records JOIN semel_answers USING (operation_id) WHERE key = ?1";
    let answer = conn.query_row(sql, [&key.key], |row| {
        let (headers, schema): (String, Option<String>) = (row.get(1)?, row.get(2)?);
        let (kind, body): (String, Option<Vec<u8>>) = (row.get(3)?, row.get(4)?);
        Ok(answer_sum(row.get(0)?, &headers, schema.as_deref(), (&kind, body.as_deref())))
    });
    if let Some(sum) = answer.optional().unwrap() {
        let sql = "UPDATE semel_records SET response_sum = ?1 WHERE key = ?2";
        conn.execute(sql, params![sum, key.key]).unwrap();
    }
}

/// Where a column of a record or its answer is: a table, and the row of a key in it.
fn place_of(column: &str) -> (&'static str, &'static str) {
    match column {
        "body" | "headers" => {
            ("semel_answers", "operation_id = (SELECT operation_id FROM semel_records WHERE key = ?1)")
        }
        _ => ("semel_records", "key = ?1"),
    }
}

pub(crate) fn tamper(conn: &Connection, key: &RecordKey, tampering: &Tampering) {
    let read = |column: &str, key: &RecordKey| -> Vec<u8> {
        let (table, row) = place_of(column);
        conn.query_row(&format!("SELECT {column} FROM {table} WHERE {row}"), [&key.key], |row| row.get(0))
            .unwrap()
    };
    let set = |column: &str, value: &dyn rusqlite::ToSql| {
        let (table, row) = place_of(column);
        let sql = format!("UPDATE {table} SET {column} = ?2 WHERE {row}");
        conn.execute(&sql, params![key.key, value]).unwrap()
    };
    let flip = |column: &str| {
        let mut bytes = read(column, key);
        *bytes.last_mut().unwrap() ^= 1;
        set(column, &bytes)
    };
    let changed = match tampering {
        Tampering::FlippedBit => flip("body"),
        Tampering::CutOff => {
            let mut bytes = read("body", key);
            bytes.pop();
            set("body", &bytes)
        }
        Tampering::BodyOf(other) => set("body", &read("body", other)),
        Tampering::Headers(headers) => set("headers", headers),
        Tampering::Status(status) => set("response_status", status),
        Tampering::PlainBody(body) => {
            assert_eq!(set("body_kind", &"stored"), 1);
            set("body", &body.as_bytes())
        }
        Tampering::FlippedCheckpoint => flip("checkpoint"),
        Tampering::CheckpointOf(other) => set("checkpoint", &read("checkpoint", other)),
        Tampering::LeaseOver => set("lease_until", &0),
    };
    assert_eq!(changed, 1, "{tampering:?}");
}

#[tokio::test]
async fn what_is_sealed_stands_no_tampering_with_the_file_and_leaves_nothing_readable_in_it() {
    let place = Place::new();
    let store = place.open().await;
    let conn = Connection::open(place.path()).unwrap();
    let tamper = async |key: &RecordKey, tampering: &Tampering| tamper_and_add_up(&conn, key, tampering);
    what_is_sealed_stands_no_tampering(Arc::new(store.clone()), tamper).await;
    store.close().await;
    for file in std::fs::read_dir(place.path().parent().unwrap()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{}", path.display());
    }
}

#[tokio::test]
async fn what_is_finished_in_the_applications_transaction_is_sealed_too() {
    let place = Place::new();
    let store = place.open().await;
    let options = EngineOptions { keyring: Some(sealing_keys()), ..EngineOptions::default() };
    let engine = Engine::with_options(Arc::new(store.clone()), options);
    let reserved = draft("sealed");
    create(&store, reserved.clone()).await;
    let writes = engine.outcome_writes(&reserved, &Arc::new(Policy::default()));
    let semel::transition::Act::Complete { response, .. } = complete() else { panic!("a completion") };
    let outcome = Outcome::Completed { response: response.clone(), resource: None };
    let finished =
        store.finish_with(Claim::of(&reserved), move |_| Ok::<_, ()>(((), writes.act(outcome)))).await;
    let (_, record) = finished.unwrap();
    let kept = read(&store, "sealed").await.unwrap();
    assert_eq!(record.as_ref(), Some(&kept));
    assert!(matches!(kept.response.as_ref().unwrap().body, Body::Sealed(_)));
    assert_eq!(engine.open(kept).unwrap().response, response);
}
