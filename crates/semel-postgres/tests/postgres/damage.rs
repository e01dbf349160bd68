//! A record that cannot be what was written.

use crate::fixture::{create, draft, key, number, open, read};
use crate::sealing::tamper;
use semel::{Body, RecordKey, State, Store as _, StoreError, StoredResponse, Swap, Swapped, When};
use semel_conformance::{
    Tampering, an_answer_that_changed_by_accident_is_damage, listings_pass_over_damaged_records,
    only_what_is_over_in_every_respect_is_purged, what_is_due_is_found_behind_damaged_records,
    writes_go_on_around_a_damaged_record,
};
use semel_testing::database::Database;
use sqlx::{AssertSqlSafe, PgPool, raw_sql};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn what_is_due_behind_damaged_records_comes_all_the_same() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    what_is_due_is_found_behind_damaged_records(&store, async |key| spoil(&pool, key).await).await;
}

/// As when it is sealed: its headers are in the store no more, in whatever form.
#[tokio::test]
async fn nothing_stays_of_an_answer_that_is_spelt_anew_as_nothing() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let response =
        |headers| StoredResponse { status: 201, headers, body: Body::NotStored, schema_version: None };
    let mut rewrites = Vec::new();
    for name in ["large", "larger", "small"] {
        let mut draft = draft(name);
        let headers = vec![("location".into(), "/payments/secret".into())];
        (draft.state, draft.response) = (State::Completed, Some(response(headers)));
        (draft.times.completed, draft.times.expires) =
            (Some(When::NOW), Some(When::In(Duration::from_secs(60))));
        create(&store, draft.clone()).await;
        let there = read(&store, name).await.unwrap();
        draft.version += 1;
        draft.times = there.times.map(When::At);
        if name != "small" {
            draft.response = Some(response(vec![]));
        }
        rewrites.push(Swap { expected: there.expected(), next: Box::new(draft), history: None });
    }
    let kept = "SELECT count(*) FROM semel_answers";
    assert_eq!(number(&pool, kept).await, 3);
    // One alone, and one among others: the statements differ.
    assert_eq!(store.swap(vec![rewrites.remove(0)]).await.unwrap().items, [Swapped::Done]);
    assert_eq!(number(&pool, kept).await, 2);
    assert_eq!(store.swap(rewrites).await.unwrap().items, [Swapped::Done, Swapped::Done]);
    assert_eq!(number(&pool, kept).await, 1);
}

#[tokio::test]
async fn an_index_alone_purges_nothing() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let spoil = async |key: &RecordKey, set: &str| {
        let spoil = AssertSqlSafe(format!("UPDATE semel_records SET {set} WHERE key = $1"));
        sqlx::query(spoil).bind(&*key.key).execute(&pool).await.unwrap();
    };
    only_what_is_over_in_every_respect_is_purged(&store, spoil).await;
}

#[tokio::test]
async fn a_damaged_record_is_in_the_way_of_its_own_item_alone() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    writes_go_on_around_a_damaged_record(&store, async |key| spoil(&pool, key).await).await;
}

#[tokio::test]
async fn an_answer_that_is_not_what_was_written_is_never_replayed() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let tamper = async |key: &RecordKey, tampering: &Tampering| tamper(&pool, key, tampering).await;
    an_answer_that_changed_by_accident_is_damage(Arc::new(store), tamper).await;
}

#[tokio::test]
async fn a_listing_shows_the_records_around_damaged_ones() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    listings_pass_over_damaged_records(&store, async |key| spoil(&pool, key).await).await;
}

#[tokio::test]
async fn what_is_left_of_an_answer_is_damage() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let left = ["response_schema = 'v1'", "body_kind = 'stored'", "response_sum = 0"];
    for (number, set) in left.into_iter().enumerate() {
        let name = format!("left-of-an-answer-{number}");
        create(&store, draft(&name)).await;
        let spoil = format!("UPDATE semel_records SET {set} WHERE key = '{name}'");
        raw_sql(AssertSqlSafe(spoil)).execute(&pool).await.unwrap();
        let read = store.read(vec![key(&name)]).await;
        assert!(matches!(read, Err(StoreError::Damaged(_))), "{set}: {read:?}");
    }
}

async fn spoil(pool: &PgPool, key: &RecordKey) {
    let spoil = "UPDATE semel_records SET fingerprint = '\\x00' WHERE key = $1";
    let spoilt = sqlx::query(spoil).bind(&key.key).execute(pool).await.unwrap();
    assert_eq!(spoilt.rows_affected(), 1);
}
