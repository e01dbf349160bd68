//! How a database comes to have the tables.

use crate::database::Database;
use crate::fixture::{draft, number, open};
use semel::{Store, When};
use semel_postgres::{PgOptions, PgStore, migration_script, migrations};
use sqlx::{AssertSqlSafe, Row, raw_sql};
use std::time::Duration;

/// The version that this program knows.
fn known() -> i64 {
    migrations().last().unwrap().version
}

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
async fn the_printed_script_makes_the_same_tables_and_can_be_run_again() {
    let (by_hand, by_itself) = (Database::new().await, Database::new().await);
    let pool = by_hand.pool().await;
    for _ in 0..2 {
        raw_sql(AssertSqlSafe(migration_script())).execute(&pool).await.unwrap();
    }
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scripts_and_instances_that_come_at_once_do_not_meet() {
    let database = Database::new().await;
    let (pool, url) = (database.pool().await, database.url());
    let running: Vec<_> = (0..8)
        .map(|number| {
            let (pool, url) = (pool.clone(), url.clone());
            tokio::spawn(async move {
                if number % 2 == 0 {
                    raw_sql(AssertSqlSafe(migration_script())).execute(&pool).await.unwrap();
                } else {
                    PgOptions::new().max_connections(2).connect(&url).await.unwrap();
                }
            })
        })
        .collect();
    for running in running {
        running.await.unwrap();
    }
    assert_eq!(number(&pool, "SELECT value FROM semel_meta WHERE name = 'schema_version'").await, known());
}

#[tokio::test]
async fn a_migration_says_from_which_version_to_which() {
    let database = Database::new().await;
    let pool = database.pool().await;
    let told = |migrated: semel_postgres::Migrated| (migrated.from, migrated.to);
    assert_eq!(told(PgStore::migrate(&pool).await.unwrap()), (0, known()));
    assert_eq!(told(PgStore::migrate(&pool).await.unwrap()), (known(), known()));
    assert_eq!(told(PgOptions::new().migrate(&database.url()).await.unwrap()), (known(), known()));
    let by_pgbouncer = PgOptions::new().without_prepared_statements();
    assert_eq!(told(by_pgbouncer.migrate(&database.url_by_pgbouncer()).await.unwrap()), (known(), known()));
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
