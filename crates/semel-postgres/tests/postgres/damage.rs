//! A record that cannot be what was written.

use crate::database::Database;
use crate::fixture::open;
use semel::RecordKey;
use semel_conformance::{listings_pass_over_damaged_records, what_is_due_is_found_behind_damaged_records};
use sqlx::PgPool;

#[tokio::test]
async fn what_is_due_behind_damaged_records_comes_all_the_same() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    what_is_due_is_found_behind_damaged_records(&store, async |key| spoil(&pool, key).await).await;
}

#[tokio::test]
async fn a_listing_shows_the_records_around_damaged_ones() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    listings_pass_over_damaged_records(&store, async |key| spoil(&pool, key).await).await;
}

async fn spoil(pool: &PgPool, key: &RecordKey) {
    let spoil = "UPDATE semel_records SET fingerprint = '\\x00' WHERE key = $1";
    let spoilt = sqlx::query(spoil).bind(&key.key).execute(pool).await.unwrap();
    assert_eq!(spoilt.rows_affected(), 1);
}
