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
    let sql = "SELECT response_status, response_headers, response_schema, body_kind, body FROM semel_records
        WHERE key = ?1 AND response_status IS NOT NULL";
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

pub(crate) fn tamper(conn: &Connection, key: &RecordKey, tampering: &Tampering) {
    let flip = |column: &str| {
        let length = format!("length({column})");
        let sql = format!("SELECT {column}, {length} FROM semel_records WHERE key = ?1");
        let mut bytes: Vec<u8> = conn.query_row(&sql, [&key.key], |row| row.get(0)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let sql = format!("UPDATE semel_records SET {column} = ?1 WHERE key = ?2");
        conn.execute(&sql, params![bytes, key.key]).unwrap()
    };
    let moved = |column: &str, from: &RecordKey| {
        let sql = format!(
            "UPDATE semel_records SET {column} = (SELECT {column} FROM semel_records WHERE key = ?1) WHERE key = ?2"
        );
        conn.execute(&sql, [&from.key, &key.key]).unwrap()
    };
    let set = |what: &str, value: &dyn rusqlite::ToSql| {
        let sql = format!("UPDATE semel_records SET {what} WHERE key = ?2");
        conn.execute(&sql, params![value, key.key]).unwrap()
    };
    let changed = match tampering {
        Tampering::FlippedBit => flip("body"),
        Tampering::CutOff => set("body = substr(body, 1, length(body) - ?1)", &1),
        Tampering::BodyOf(other) => moved("body", other),
        Tampering::Headers(headers) => set("response_headers = ?1", headers),
        Tampering::Status(status) => set("response_status = ?1", status),
        Tampering::PlainBody(body) => set("body_kind = 'stored', body = ?1", &body.as_bytes()),
        Tampering::FlippedCheckpoint => flip("checkpoint"),
        Tampering::CheckpointOf(other) => moved("checkpoint", other),
        Tampering::LeaseOver => set("lease_until = ?1", &0),
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
    let acts = engine.acts(&reserved, &Arc::new(Policy::default()));
    let semel::transition::Act::Complete { response, .. } = complete() else { panic!("a completion") };
    let outcome = Outcome::Completed { response: response.clone(), resource: None };
    let finished =
        store.finish_with(Claim::of(&reserved), move |_| Ok::<_, ()>(((), acts.of(outcome)))).await;
    let (_, record) = finished.unwrap();
    let kept = read(&store, "sealed").await.unwrap();
    assert_eq!(record.as_ref(), Some(&kept));
    assert!(matches!(kept.response.as_ref().unwrap().body, Body::Sealed(_)));
    assert_eq!(engine.open(kept).unwrap().response, response);
}
