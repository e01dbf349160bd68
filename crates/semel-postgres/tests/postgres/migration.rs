//! How a database comes to have the tables.

use crate::database::Database;
use crate::fixture::{draft, number, open};
use semel::{Store, When};
use semel_postgres::{OpenError, PgOptions, PgStore, migration_script};
use sqlx::{AssertSqlSafe, Row, raw_sql};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ten_instances_that_start_at_once_all_find_the_tables() {
    let database = Database::new().await;
    let url = database.url();
    let starting: Vec<_> = (0..10)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { PgOptions::new().max_connections(2).connect(&url).await })
        })
        .collect();
    for (number, started) in starting.into_iter().enumerate() {
        let store = started.await.unwrap().unwrap();
        store.create(vec![draft(&format!("from-{number}"))]).await.unwrap();
    }
    let pool = database.pool().await;
    assert_eq!(number(&pool, "SELECT count(*) FROM semel_records").await, 10);
}

#[tokio::test]
async fn the_printed_script_makes_the_same_tables() {
    let (by_hand, by_itself) = (Database::new().await, Database::new().await);
    let pool = by_hand.pool().await;
    raw_sql(AssertSqlSafe(migration_script())).execute(&pool).await.unwrap();
    PgOptions::new().without_migrating().connect(&by_hand.url()).await.unwrap();
    open(&by_itself).await;
    let tables = "SELECT string_agg(format('%s.%s %s', table_name, column_name, data_type), ', ' ORDER BY table_name, column_name)
                    FROM information_schema.columns WHERE table_name LIKE 'semel%'";
    let indexes =
        "SELECT string_agg(indexdef, ', ' ORDER BY indexdef) FROM pg_indexes WHERE tablename LIKE 'semel%'";
    for sql in [tables, indexes] {
        let told = |row: sqlx::postgres::PgRow| row.get::<String, _>(0);
        let one = told(raw_sql(sql).fetch_one(&pool).await.unwrap());
        assert_eq!(one, told(raw_sql(sql).fetch_one(&by_itself.pool().await).await.unwrap()));
    }
}

#[tokio::test]
async fn tables_that_are_too_new_are_refused_and_compatible_ones_are_not() {
    let database = Database::new().await;
    open(&database).await;
    let pool = database.pool().await;
    let newer = "UPDATE semel_meta SET value = value + 1 WHERE name = 'schema_version'";
    raw_sql(newer).execute(&pool).await.unwrap();
    open(&database).await;
    raw_sql("UPDATE semel_meta SET value = value + 1 WHERE name = 'compatible_with'")
        .execute(&pool)
        .await
        .unwrap();
    let refused = PgStore::connect(&database.url()).await;
    assert!(matches!(refused, Err(OpenError::Newer { .. })), "{refused:?}");
}

#[tokio::test]
async fn people_can_read_the_operations_even_those_that_last_for_ever() {
    let database = Database::new().await;
    let store = open(&database).await;
    let mut forever = draft("for-ever");
    forever.times.lease = When::In(Duration::MAX);
    store.create(vec![forever, draft("for-now")]).await.unwrap();
    let pool = database.pool().await;
    let sql =
        "SELECT count(*) FROM semel_operations WHERE created BETWEEN now() - interval '1 minute' AND now()
                 AND completed IS NULL AND (due = 'infinity') = (key = 'for-ever')";
    assert_eq!(number(&pool, sql).await, 2);
}
