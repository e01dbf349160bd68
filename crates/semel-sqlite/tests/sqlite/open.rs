//! Opening, and refusing to.

use crate::fixture::{Place, create, draft, read};
use rusqlite::Connection;
use semel::audit::{AuditAction, AuditEntry, AuditFilter};
use semel::columns::answer_sum;
use semel::{Body, Created, DueKind, OperationId, State, Store as _, Timestamp};
use semel_sqlite::{OpenError, SqliteOptions, SqliteStore};

#[tokio::test]
async fn what_was_written_is_there_after_reopening() {
    let place = Place::new();
    let store = place.open().await;
    let draft = draft("kept");
    assert_eq!(create(&store, draft.clone()).await, Created::Inserted);
    drop(store);
    let kept = read(&place.open().await, "kept").await.unwrap();
    assert_eq!((kept.operation_id, kept.owner), (draft.operation_id, draft.owner));
}

#[tokio::test]
async fn commits_are_synced_and_the_log_is_written_ahead() {
    let place = Place::new();
    let settings = |store: SqliteStore| async move {
        store
            .transaction(|tx| {
                let level: i64 = tx.pragma_query_value(None, "synchronous", |row| row.get(0))?;
                let mode: String = tx.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
                Ok::<_, rusqlite::Error>((level, mode))
            })
            .await
            .unwrap()
    };
    assert_eq!(settings(place.open().await).await, (2, "wal".into()));
    let unsafe_store = SqliteOptions::new().dangerously_without_fsync().open(place.path()).await.unwrap();
    assert_eq!(settings(unsafe_store).await, (0, "wal".into()));
}

#[tokio::test]
async fn a_closure_cannot_turn_the_syncing_off() {
    let place = Place::new();
    let store = place.open().await;
    let _refused_or_without_effect =
        store.transaction(|tx| tx.pragma_update(None, "synchronous", "OFF")).await;
    let level = store
        .transaction(|tx| tx.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)))
        .await
        .unwrap();
    assert_eq!(level, 2);
}

#[tokio::test]
async fn a_newer_file_is_refused_and_both_versions_are_named() {
    let place = Place::new();
    place.open().await.close().await;
    let conn = Connection::open(place.path()).unwrap();
    conn.execute("UPDATE semel_meta SET value = 99 WHERE name IN ('schema_version', 'compatible_with')", [])
        .unwrap();
    let error = SqliteStore::open(place.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 99, known: 6, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("99") && text.contains("up to 6"), "{text}");
}

#[tokio::test]
async fn a_newer_file_that_only_has_more_in_it_is_opened_and_left_as_it_is() {
    let place = Place::new();
    place.open().await.close().await;
    let conn = Connection::open(place.path()).unwrap();
    conn.execute("UPDATE semel_meta SET value = 99 WHERE name = 'schema_version'", []).unwrap();
    let store = place.open().await;
    assert_eq!(create(&store, draft("beside-newer")).await, Created::Inserted);
    store.close().await;
    let sql = "SELECT value FROM semel_meta WHERE name = 'schema_version'";
    assert_eq!(conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 99);
}

/// Files of earlier versions, each with a record in progress, one that is completed, one whose body is to go first, one with a checkpoint, a
/// tombstone, and one that lasts for ever.
const RECORDS_OF_EARLIER_VERSIONS: &str = "
INSERT INTO semel_records (key_hash, operation_id, tenant, operation, key, fingerprint, recipe, state, version, attempt,
    owner, origin, due_kind, due_at, created_at, lease_until, completed_at, body_expires_at, expires_at, purge_at,
    reconcile_attempts, dead_letter, checkpoint, response_status, response_headers, body_kind, response_sum, body)
SELECT CAST('0123456789abcde' || n AS BLOB), CAST('operation-id-00' || n AS BLOB), 'tenant', 'operation', name,
    zeroblob(32), zeroblob(16), state, 2, 1, zeroblob(16), 'first', due_kind,
    CASE due_kind WHEN 'body' THEN body_expires WHEN 'window' THEN expires WHEN 'purge' THEN purge ELSE 5 END, 5, 5,
    CASE WHEN expires IS NOT NULL THEN 6 END, body_expires, expires, purge, 0, 0, checkpoint,
    CASE WHEN state = 'completed' THEN 201 END,
    CASE WHEN state = 'completed' THEN '[[\"content-type\",\"application/json\"]]' END,
    CASE WHEN state = 'completed' THEN 'stored' END, CASE WHEN state = 'completed' THEN SUM END,
    CASE WHEN state = 'completed' THEN CAST('{}' AS BLOB) END
FROM (SELECT 1 AS n, 'under way' AS name, 'in_progress' AS state, 'lease' AS due_kind, NULL AS body_expires,
        NULL AS expires, NULL AS purge, NULL AS checkpoint
    UNION ALL SELECT 2, 'done', 'completed', 'window', NULL, 8000000000000, 9000000000000, NULL
    UNION ALL SELECT 3, 'body first', 'completed', 'body', 7000000000000, 8000000000000, 9000000000000, NULL
    UNION ALL SELECT 4, 'checkpoint', 'completed', 'body', 7000000000000, 8000000000000, 9000000000000, x'01'
    UNION ALL SELECT 5, 'tombstone', 'expired', 'purge', NULL, 10, 9000000000000, NULL
    UNION ALL SELECT 6, 'for ever', 'completed', 'window', NULL, 8000000000000, NULL, NULL
    UNION ALL SELECT 7, 'dropped', 'completed', 'window', NULL, 8000000000000, 9000000000000, NULL);
UPDATE semel_records SET body_kind = 'dropped', body = NULL WHERE key = 'dropped'";

#[tokio::test]
async fn a_file_of_an_earlier_version_gets_what_it_lacks_and_keeps_what_it_has() {
    let schemas = [
        include_str!("../../src/schema_1.sql"),
        include_str!("../../src/schema_2.sql"),
        include_str!("../../src/schema_3.sql"),
        include_str!("../../src/schema_4.sql"),
        include_str!("../../src/schema_5.sql"),
    ];
    for version in 1..=schemas.len() {
        let place = Place::new();
        let conn = Connection::open(place.path()).unwrap();
        // The records are of the first two versions, and were converted by those after them.
        let (first, rest) = schemas[..version].split_at(version.min(2));
        first.iter().for_each(|schema| conn.execute_batch(schema).unwrap());
        let headers = r#"[["content-type","application/json"]]"#;
        let sum = answer_sum(201, headers, None, ("stored", Some(b"{}")));
        let records = RECORDS_OF_EARLIER_VERSIONS.replace("SUM", &sum.to_string());
        conn.execute_batch(&records).unwrap();
        rest.iter().for_each(|schema| conn.execute_batch(schema).unwrap());
        let sql =
            "INSERT INTO semel_meta (name, value) VALUES ('schema_version', ?1), ('compatible_with', 1)";
        conn.execute(sql, [i64::try_from(version).unwrap()]).unwrap();
        conn.execute_batch("CREATE VIEW mine AS SELECT key, state FROM semel_operations").unwrap();

        let store = place.open().await;
        let seen: i64 = conn.query_row("SELECT count(*) FROM mine", [], |row| row.get(0)).unwrap();
        assert_eq!(seen, 7, "what others made of the view stays");
        let find = async |name: &str| {
            // By their ids: their hashes are made up.
            let sql = "SELECT operation_id FROM semel_records WHERE key = ?1";
            let id = conn.query_row(sql, [name], |row| row.get(0)).map(OperationId::from_bytes).unwrap();
            store.find(vec![id]).await.unwrap().items.pop().flatten().unwrap()
        };
        let purge = Some((DueKind::Purge, Timestamp::from_millis(9_000_000_000_000)));
        let window = Some((DueKind::Window, Timestamp::from_millis(8_000_000_000_000)));
        let lease = Some((DueKind::Lease, Timestamp::from_millis(5)));
        for (name, due) in [
            ("under way", lease),
            ("done", purge),
            ("body first", purge),
            ("checkpoint", window),
            ("tombstone", purge),
            ("for ever", None),
            ("dropped", purge),
        ] {
            let record = find(name).await;
            assert_eq!(record.due(), due, "{name}");
            let sql = "SELECT due_kind, due_at FROM semel_records WHERE key = ?1";
            let written: (Option<String>, Option<i64>) =
                conn.query_row(sql, [name], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            let due = due.map(|(kind, at)| (kind.as_str().to_owned(), at.as_millis()));
            assert_eq!(written.0.zip(written.1), due, "{name}");
            let answer = record.response.map(|kept| (kept.status, kept.headers.len(), kept.body));
            let expected = match record.state {
                State::Completed if name == "dropped" => Some((201, 0, Body::Dropped)),
                State::Completed => Some((201, 1, Body::Stored("{}".into()))),
                _ => None,
            };
            assert_eq!(answer, expected, "{name}");
            assert_eq!(
                record.times.body_expires.is_some(),
                ["body first", "checkpoint", "dropped"].contains(&name)
            );
        }
        let lanes: i64 =
            conn.query_row("SELECT count(*) FROM semel_outbox_lanes", [], |row| row.get(0)).unwrap();
        assert_eq!(lanes, 64);
        assert_eq!(create(&store, draft("new")).await, Created::Inserted);
        let entry = AuditEntry::new("token:ada", AuditAction::Reload);
        store.audit(entry.clone(), None).await.unwrap();
        let page = store.audited(AuditFilter::default(), None, 10).await.unwrap();
        assert_eq!(page.lines.into_iter().map(|line| line.entry).collect::<Vec<_>>(), [entry]);
        store.close().await;
        // What is no longer true of it is not told to older programs.
        let sql = "SELECT value FROM semel_meta WHERE name = 'compatible_with'";
        assert_eq!(conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 3);
    }
}

#[tokio::test]
async fn the_database_of_another_application_is_refused_and_left_as_it_was() {
    let place = Place::new();
    let conn = Connection::open(place.path()).unwrap();
    conn.execute_batch("CREATE TABLE accounts (id INTEGER PRIMARY KEY)").unwrap();
    let error = SqliteStore::open(place.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::NotOurs { .. }), "{error:?}");
    let mode: String = conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(tables, 1);
}

#[tokio::test]
async fn an_applications_database_is_shared_when_asked_for_and_its_user_version_is_its_own() {
    let place = Place::new();
    let conn = Connection::open(place.path()).unwrap();
    conn.execute_batch("CREATE TABLE accounts (id INTEGER PRIMARY KEY); PRAGMA user_version = 17;").unwrap();
    let store = SqliteOptions::new().share_database_file().open(place.path()).await.unwrap();
    assert_eq!(create(&store, draft("beside")).await, Created::Inserted);
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 17);
    drop(store);
    // Once it holds a store, it is ours too.
    assert!(read(&place.open().await, "beside").await.is_some());
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_as_it_was() {
    let place = Place::new();
    let text = "dear diary, ".repeat(1000);
    std::fs::write(place.path(), &text).unwrap();
    let error = SqliteStore::open(place.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error:?}");
    assert_eq!(std::fs::read_to_string(place.path()).unwrap(), text);
}

#[tokio::test]
async fn what_is_not_a_durable_file_is_refused_and_the_memory_store_is_named() {
    for path in ["", ":memory:", "file::memory:?cache=shared", "file:semel.db?vfs=memdb"] {
        let error = SqliteStore::open(path).await.unwrap_err();
        assert!(matches!(error, OpenError::NotDurable { .. }), "{path}: {error:?}");
        assert!(error.to_string().contains("memory store"));
    }
}

#[tokio::test]
async fn path_errors_say_what_to_do() {
    let place = Place::new();
    let missing = place.path().join("missing").join("semel.db");
    let error = SqliteStore::open(&missing).await.unwrap_err();
    assert!(matches!(error, OpenError::NoDirectory { .. }), "{error:?}");
    assert!(error.to_string().contains("create it first"));

    let error = SqliteStore::open(place.path().parent().unwrap()).await.unwrap_err();
    assert!(matches!(error, OpenError::IsDirectory { .. }), "{error:?}");
    assert!(error.to_string().contains("name a file in it"));
}

#[tokio::test]
async fn a_file_that_is_held_is_refused_within_bounded_time() {
    let place = Place::new();
    let conn = Connection::open(place.path()).unwrap();
    conn.execute_batch("BEGIN EXCLUSIVE; CREATE TABLE t (x)").unwrap();
    let began = std::time::Instant::now();
    let options = SqliteOptions::new().busy_timeout(std::time::Duration::from_millis(100));
    let error = options.open(place.path()).await.unwrap_err();
    assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
    assert!(began.elapsed() < std::time::Duration::from_secs(5));
}

#[tokio::test]
async fn many_that_open_a_new_file_at_once_all_succeed() {
    let place = Place::new();
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let path = place.path();
            tokio::spawn(async move {
                let store = SqliteStore::open(path).await.unwrap();
                create(&store, draft(&format!("key-{number}"))).await
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Created::Inserted);
    }
}

#[tokio::test]
async fn people_can_read_the_file_with_the_sqlite_shell() {
    let place = Place::new();
    let store = place.open().await;
    let draft = draft("for-people");
    create(&store, draft.clone()).await;
    let conn = Connection::open(place.path()).unwrap();
    let (id, state): (String, String) = conn
        .query_row("SELECT operation_id, state FROM semel_operations WHERE key = 'for-people'", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!((id, state.as_str()), (draft.operation_id.to_string(), "in_progress"));
}
