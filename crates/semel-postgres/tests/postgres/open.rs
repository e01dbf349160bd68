//! What a store refuses to start on, and what it refuses to write on.

use crate::database::Database;
use crate::fixture::{draft, number, open, read};
use semel::{Store, StoreError};
use semel_postgres::{OpenError, PgOptions, PgStore};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Executor, Row, raw_sql};

async fn set_for_the_database(database: &Database, setting: &str) {
    let pool = database.pool().await;
    let name: String = raw_sql("SELECT current_database()").fetch_one(&pool).await.unwrap().get(0);
    raw_sql(AssertSqlSafe(format!("ALTER DATABASE {name} {setting}"))).execute(&pool).await.unwrap();
}

#[tokio::test]
async fn commits_that_can_be_lost_are_refused_unless_asked_for() {
    let database = Database::new().await;
    set_for_the_database(&database, "SET synchronous_commit = off").await;
    let refused = PgStore::connect(&database.url()).await;
    let accepted = PgOptions::new().dangerously_accept_lossy_commits().connect(&database.url()).await;
    let written = accepted.unwrap().create(vec![draft("accepted")]).await;
    set_for_the_database(&database, "RESET synchronous_commit").await;
    assert!(matches!(refused, Err(OpenError::LossyCommits)), "{refused:?}");
    assert!(written.is_ok());
}

#[tokio::test]
async fn a_connection_whose_commits_can_be_lost_writes_nothing() {
    let database = Database::new().await;
    // As behind a pooler, where the settings of a connection are whatever the one before it left.
    let lossy = PgPoolOptions::new().after_connect(|conn, _| {
        Box::pin(async move { conn.execute("SET synchronous_commit = off").await.map(drop) })
    });
    let direct = open(&database).await;
    let pool = lossy.connect_with(database.options()).await.unwrap();
    let refused = PgStore::new(pool.clone()).await;
    assert!(matches!(refused, Err(OpenError::LossyCommits)), "{refused:?}");
    // A store that was opened while all was well.
    let flipping = PgPoolOptions::new().max_connections(1).connect_with(database.options()).await.unwrap();
    let store = PgStore::new(flipping.clone()).await.unwrap();
    flipping.execute("SET synchronous_commit = off").await.unwrap();
    let refused = store.create(vec![draft("lossy")]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(read(&direct, "lossy").await, None);
}

#[tokio::test]
async fn the_tables_are_not_made_where_somebody_else_makes_them() {
    let database = Database::new().await;
    let options = PgOptions::new().without_migrating();
    let refused = options.clone().connect(&database.url()).await;
    assert!(matches!(refused, Err(OpenError::NotMigrated { found: 0, .. })), "{refused:?}");
    let pool = database.pool().await;
    assert_eq!(number(&pool, "SELECT count(*) FROM pg_class WHERE relname LIKE 'semel%'").await, 0);
    PgStore::migrate(&pool).await.unwrap();
    options.connect(&database.url()).await.unwrap();
}

#[tokio::test]
async fn what_is_no_url_is_told_as_such() {
    let refused = PgStore::connect("payments database").await;
    assert!(matches!(refused, Err(OpenError::Url(_))), "{refused:?}");
}
