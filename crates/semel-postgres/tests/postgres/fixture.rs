//! Records to write, and where to write them.
#![allow(dead_code, reason = "each test binary uses a part of this")]

use bytes::Bytes;
use semel::transition::{Act, Change, Claim, Reservation, Windows, reserve};
use semel::{
    Body, Created, Draft, Fingerprint, OperationId, Owner, Policy, RecipeId, Record, RecordKey, Store,
    StoredResponse, Swap, Swapped,
};
use semel_postgres::PgStore;
use semel_testing::database::Database;
use sqlx::{PgPool, Row, raw_sql};

pub(crate) async fn open(database: &Database) -> PgStore {
    PgStore::connect(&database.url()).await.unwrap()
}

pub(crate) fn key(name: &str) -> RecordKey {
    RecordKey::new("tenant", "create_payment", name)
}

pub(crate) fn draft(name: &str) -> Draft {
    let reservation = Reservation {
        key: key(name),
        operation_id: OperationId::random(),
        fingerprint: Fingerprint([7; 32]),
        recipe: RecipeId([9; 16]),
        owner: Owner::random(),
    };
    reserve(reservation, &Policy::default())
}

pub(crate) fn complete() -> Act {
    Act::Complete {
        response: Some(StoredResponse {
            status: 201,
            headers: vec![("content-type".into(), Bytes::from_static(b"application/json"))],
            body: Body::Stored(Bytes::from_static(b"{\"id\":\"pay_1\"}")),
            schema_version: None,
        }),
        resource: None,
        windows: Windows::from(&Policy::default()),
    }
}

/// What the owner of `record` writes to complete it.
pub(crate) fn completion(record: &Record) -> Swap {
    let change = semel::transition::act(record, &Claim::of(record), &complete()).unwrap();
    let Change::Put { next, history } = change else { panic!("a completion is written") };
    Swap { expected: record.expected(), next, history }
}

pub(crate) async fn create(store: &PgStore, draft: Draft) -> Created {
    store.create(vec![draft]).await.unwrap().items.remove(0)
}

/// A record in progress, as it was written.
pub(crate) async fn reserved(store: &PgStore, name: &str) -> Record {
    let draft = draft(name);
    let answer = store.create(vec![draft.clone()]).await.unwrap();
    assert_eq!(answer.items, [Created::Inserted]);
    draft.at(answer.now)
}

pub(crate) async fn swap(store: &PgStore, swap: Swap) -> Swapped {
    store.swap(vec![swap]).await.unwrap().items.remove(0)
}

pub(crate) async fn read(store: &PgStore, name: &str) -> Option<Record> {
    store.read(vec![key(name)]).await.unwrap().items.remove(0)
}

/// The one number that a query answers with.
pub(crate) async fn number(pool: &PgPool, sql: &'static str) -> i64 {
    raw_sql(sql).fetch_one(pool).await.unwrap().get(0)
}
