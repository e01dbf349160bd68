//! A record that cannot be what was written.

use crate::database::Database;
use crate::fixture::open;
use semel::RecordKey;
use semel_conformance::what_is_due_is_found_behind_damaged_records;

#[tokio::test]
async fn what_is_due_behind_damaged_records_comes_all_the_same() {
    let database = Database::new().await;
    let (store, pool) = (open(&database).await, database.pool().await);
    let damage = async |key: &RecordKey| {
        let spoil = "UPDATE semel_records SET fingerprint = '\\x00' WHERE key = $1";
        let spoilt = sqlx::query(spoil).bind(&key.key).execute(&pool).await.unwrap();
        assert_eq!(spoilt.rows_affected(), 1);
    };
    what_is_due_is_found_behind_damaged_records(&store, damage).await;
}
