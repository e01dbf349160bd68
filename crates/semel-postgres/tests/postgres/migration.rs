//! How a database comes to have the tables.

use crate::fixture::{draft, number, open};
use semel::audit::{AuditAction, AuditEntry};
use semel::{Body, DueKind, OperationId, State, Store, When};
use semel_postgres::{PgOptions, PgStore, migration_script, migrations};
use semel_testing::database::Database;
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

/// What the version before answers were kept apart may have left: a record in progress, one that is completed, one whose body was to go
/// first, one with a checkpoint, a tombstone, and one that lasts for ever.
const RECORDS_OF_VERSION_2: &str = "
INSERT INTO semel_records (key_hash, operation_id, tenant, operation, key, fingerprint, recipe, state, version, attempt, owner,
    origin, due_kind, due_at, created_at, lease_until, completed_at, body_expires_at, expires_at, purge_at,
    reconcile_attempts, dead_letter, checkpoint, response_status, response_headers, body_kind, response_sum, body)
SELECT md5('k' || n)::uuid, md5('o' || n)::uuid, 'tenant', 'operation', name, decode(repeat('07', 32), 'hex'), md5('r')::uuid,
    state, 2, 1, md5('w')::uuid, 'first', due_kind,
    CASE due_kind WHEN 'body' THEN body_expires WHEN 'window' THEN expires WHEN 'purge' THEN purge ELSE 5 END, 5, 5,
    CASE WHEN expires IS NOT NULL THEN 6 END, body_expires, expires, purge, 0, false, checkpoint, a.status, a.headers, a.kind, a.sum, a.body
FROM (VALUES (1, 'under way', 'in_progress', 'lease', NULL::bigint, NULL::bigint, NULL::bigint, NULL::bytea),
        (2, 'done', 'completed', 'window', NULL, 8000000000000, 9000000000000, NULL),
        (3, 'body first', 'completed', 'body', 7000000000000, 8000000000000, 9000000000000, NULL),
        (4, 'checkpoint', 'completed', 'body', 7000000000000, 8000000000000, 9000000000000, '\\x01'),
        (5, 'tombstone', 'expired', 'purge', NULL, 10, 9000000000000, NULL),
        (6, 'for ever', 'completed', 'window', NULL, 8000000000000, NULL, NULL),
        (7, 'dropped', 'completed', 'window', NULL, 8000000000000, 9000000000000, NULL))
    AS r (n, name, state, due_kind, body_expires, expires, purge, checkpoint)
LEFT JOIN (SELECT 'completed' AS of, 201 AS status, '[[\"content-type\",\"application/json\"]]' AS headers, 'stored' AS kind,
    -1793133647 AS sum, '{}'::bytea AS body) AS a ON a.of = r.state;
UPDATE semel_records SET body_kind = 'dropped', body = NULL WHERE key = 'dropped'";

#[tokio::test]
async fn a_database_of_a_version_before_gets_what_it_lacks_and_keeps_what_it_has() {
    for (version, by_script) in
        [(2, true), (2, false), (3, true), (3, false), (4, false), (5, true), (5, false)]
    {
        let database = Database::new().await;
        let pool = database.pool().await;
        for migration in &migrations()[..2] {
            raw_sql(migration.sql).execute(&pool).await.unwrap();
        }
        raw_sql(RECORDS_OF_VERSION_2).execute(&pool).await.unwrap();
        for migration in &migrations()[2..version] {
            raw_sql(migration.sql).execute(&pool).await.unwrap();
        }
        let meta = format!(
            "INSERT INTO semel_meta (name, value) VALUES ('schema_version', {version}), ('compatible_with', 1)"
        );
        raw_sql(AssertSqlSafe(meta)).execute(&pool).await.unwrap();
        raw_sql("CREATE VIEW mine AS SELECT key, state FROM semel_operations").execute(&pool).await.unwrap();
        if by_script {
            raw_sql(AssertSqlSafe(migration_script())).execute(&pool).await.unwrap();
        }
        let store = open(&database).await;
        store.audit(AuditEntry::new("token:ada", AuditAction::Reload), None).await.unwrap();
        assert_eq!(number(&pool, "SELECT count(*) FROM semel_audit").await, 1);
        assert_eq!(number(&pool, "SELECT count(*) FROM mine").await, 7, "what others made of the view stays");
        // As the version before reserved. It could not complete any more, so it must not begin either.
        let reserving = "INSERT INTO semel_records (key_hash, operation_id, tenant, operation, key, fingerprint, recipe, owner,
                created_at, lease_until, due_at, due_kind, state, version, attempt, origin, reconcile_attempts, dead_letter)
            SELECT md5('a')::uuid, md5('b')::uuid, 'tenant', 'operation', 'key', '', md5('c')::uuid, md5('d')::uuid, 5, 5, 5,
                'lease', 'in_progress', 1, 1, 'first', 0, false";
        assert!(raw_sql(reserving).execute(&pool).await.is_err());
        let purge = Some((DueKind::Purge, 9_000_000_000_000));
        for (name, expected) in [
            ("under way", Some((DueKind::Lease, 5))),
            ("done", purge),
            ("body first", purge),
            ("checkpoint", Some((DueKind::Window, 8_000_000_000_000))),
            ("tombstone", purge),
            ("for ever", None),
            ("dropped", purge),
        ] {
            let row = "SELECT operation_id, due_kind, due_at FROM semel_records WHERE key = $1";
            let row = sqlx::query(row).bind(name).fetch_one(&pool).await.unwrap();
            let id = OperationId::from(row.get::<uuid::Uuid, _>(0));
            let record = store.find(vec![id]).await.unwrap().items.pop().flatten().unwrap();
            assert_eq!(record.due().map(|(kind, at)| (kind, at.as_millis())), expected, "{name}");
            let written = row.get::<Option<String>, _>(1).zip(row.get::<Option<i64>, _>(2));
            assert_eq!(written, expected.map(|(kind, at)| (kind.as_str().to_owned(), at)), "{name}");
            let answer = record.response.map(|kept| (kept.status, kept.headers.len(), kept.body));
            let expected = match record.state {
                State::Completed if name == "dropped" => Some((201, 0, Body::Dropped)),
                State::Completed => Some((201, 1, Body::Stored("{}".into()))),
                _ => None,
            };
            assert_eq!(answer, expected, "{name}");
        }
    }
}
