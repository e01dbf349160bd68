//! What a store refuses to start on, and what it refuses to write on.

use crate::fixture::{completion, draft, number, open, read, reserved, swap};
use semel::{Store, StoreError, Swapped};
use semel_postgres::{OpenError, PgOptions, PgStore, reserve_in};
use semel_testing::database::Database;
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
    let kept = async |store: &PgStore| store.remember("secret".into(), "value".into()).await;
    let refused = kept(&store).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(direct.recall("secret".into()).await.unwrap(), None);
    kept(&direct).await.unwrap();
    assert_eq!(kept(&store).await.unwrap(), "value", "what is there already is durable");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_may_only_change_rows_is_enough_for_a_service() {
    let database = Database::new().await;
    let owner = database.pool().await;
    PgStore::migrate(&owner).await.unwrap();
    let role = "semel_test_service";
    let grants = format!(
        "DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
         GRANT USAGE ON SCHEMA public TO {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON semel_records, semel_answers, semel_history, semel_remembered
             TO {role};
         GRANT SELECT, INSERT, UPDATE ON semel_clock TO {role};
         GRANT SELECT ON semel_meta TO {role}"
    );
    raw_sql(AssertSqlSafe(grants)).execute(&owner).await.unwrap();
    let as_role = PgPoolOptions::new().after_connect(move |conn, _| {
        Box::pin(async move { conn.execute(AssertSqlSafe(format!("SET ROLE {role}"))).await.map(drop) })
    });
    let pool = as_role.connect_with(database.options()).await.unwrap();
    // Without one of them it would execute what it cannot remember.
    let revoking = format!("REVOKE INSERT ON semel_answers FROM {role}");
    raw_sql(AssertSqlSafe(revoking)).execute(&owner).await.unwrap();
    let refused = PgOptions::new().without_migrating().open(pool.clone()).await;
    let Err(OpenError::NotAllowed { missing }) = refused else { panic!("{refused:?}") };
    assert_eq!(missing, "INSERT on semel_answers");
    let granting = format!("GRANT INSERT ON semel_answers TO {role}");
    raw_sql(AssertSqlSafe(granting)).execute(&owner).await.unwrap();
    let store = PgOptions::new().without_migrating().open(pool.clone()).await.unwrap();
    assert!(raw_sql("CREATE TABLE public.other ()").execute(&pool).await.is_err(), "it may not make tables");

    store.remember("recipe".into(), "text".into()).await.unwrap();
    let record = reserved(&store, "completed").await;
    assert_eq!(swap(&store, completion(&record)).await, Swapped::Done);
    assert_eq!(store.drop_answers(10).await.unwrap().items, []);
    assert_eq!(store.purge(10).await.unwrap().items, []);
    let doubtful = reserved(&store, "removed").await;
    assert_eq!(store.remove(vec![doubtful.expected()]).await.unwrap().items, [Swapped::Done]);
    let mut tx = pool.begin().await.unwrap();
    reserve_in(&mut tx, draft("in-a-transaction")).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn what_is_no_url_is_told_as_such() {
    let refused = PgStore::connect("payments database").await;
    assert!(matches!(refused, Err(OpenError::Url(_))), "{refused:?}");
}

#[tokio::test]
async fn a_url_can_say_that_nothing_is_to_be_prepared() {
    let database = Database::new().await;
    let url = database.url_by_pgbouncer();
    let and = if url.contains('?') { '&' } else { '?' };
    let store = PgStore::connect(&format!("{url}{and}statement-cache-capacity=0")).await.unwrap();
    for number in 0..10 {
        let name = format!("by a pooler {number}");
        store.create(vec![draft(&name)]).await.unwrap();
        assert!(read(&store, &name).await.is_some());
    }
}
