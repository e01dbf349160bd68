//! The file fails: the answer comes in bounded time, says what is certain, and the store works again afterwards.

use crate::fixture::{Place, complete, create, draft, key, read};
use rusqlite::Connection;
use semel::transition::Claim;
use semel::{Created, Draft, State, Store, StoreError};
use semel_sqlite::{SqliteOptions, SqliteStore, TransactionError};
use semel_testing::shim;
use std::path::Path;
use std::time::{Duration, Instant};

async fn refused(store: &SqliteStore, draft: Draft) -> String {
    match store.create(vec![draft]).await {
        Err(StoreError::Unavailable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lock_that_is_held_too_long_is_unavailable_and_then_works_again() {
    let place = Place::new();
    let store =
        SqliteOptions::new().busy_timeout(Duration::from_millis(200)).open(place.path()).await.unwrap();
    create(&store, draft("before")).await;
    let holder = Connection::open(place.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let began = Instant::now();
    let text = refused(&store, draft("during")).await;
    assert!(text.contains("lock"), "{text}");
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(200) && waited < Duration::from_millis(1_500), "{waited:?}");
    // Readers do not care.
    assert!(read(&store, "before").await.is_some());
    assert_eq!(read(&store, "during").await, None);
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(create(&store, draft("during")).await, Created::Inserted);
}

#[tokio::test]
async fn a_full_file_is_unavailable_leaves_nothing_half_and_works_again_once_there_is_room() {
    let place = Place::new();
    let limited = SqliteOptions::new().max_file_size(200_000).open(place.path()).await.unwrap();
    let mut written = Vec::new();
    let text = loop {
        let names: Vec<_> = (0..10).map(|item| format!("key-{}-{item}", written.len())).collect();
        match limited.create(names.iter().map(|name| draft(name)).collect()).await {
            Ok(_) => written.extend(names),
            Err(StoreError::Unavailable(text)) => {
                for name in names {
                    assert_eq!(read(&limited, &name).await, None);
                }
                break text;
            }
            Err(error) => panic!("{error}"),
        }
    };
    assert!(text.contains("full"), "{text}");
    assert!(!written.is_empty());
    for name in &written {
        assert!(read(&limited, name).await.is_some(), "{name} was acknowledged");
    }
    // What frees pages still works, and makes room.
    let mut expected = Vec::new();
    for name in &written[..written.len() / 2] {
        expected.push(read(&limited, name).await.unwrap().expected());
    }
    limited.remove(expected).await.unwrap();
    assert_eq!(create(&limited, draft("room-again")).await, Created::Inserted);
}

#[tokio::test]
async fn a_closure_that_fills_the_file_does_not_take_the_others_along() {
    let place = Place::new();
    let store = SqliteOptions::new().max_file_size(300_000).open(place.path()).await.unwrap();
    store.transaction(|tx| tx.execute_batch("CREATE TABLE blobs (bytes BLOB)")).await.unwrap();
    let holder = Connection::open(place.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { create(&store, draft("first")).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let filling = store.transaction(|tx| tx.execute("INSERT INTO blobs VALUES (zeroblob(1000000))", []));
    let letting_go = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        holder.execute_batch("ROLLBACK").unwrap();
    };
    let (filling, beside, ()) = tokio::join!(filling, create(&store, draft("beside")), letting_go);
    assert!(matches!(filling, Err(TransactionError::Application(_))), "{filling:?}");
    assert_eq!(beside, Created::Inserted);
    assert_eq!(first.await.unwrap(), Created::Inserted);
    assert!(read(&store, "beside").await.is_some());
}

/// The file that makes the disk full, in the process that runs under the shim.
const FULL: &str = "SHIM_FULL";

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim is written for Linux and glibc")]
fn a_disk_that_is_full_when_it_comes_to_the_commit_has_taken_nothing() {
    match std::env::var_os(FULL) {
        None => {
            let this = "trouble::a_disk_that_is_full_when_it_comes_to_the_commit_has_taken_nothing";
            shim::run_again(this, "full_log", FULL);
        }
        Some(full) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(on_a_disk_that_fills(full.as_ref()));
        }
    }
}

async fn on_a_disk_that_fills(full: &Path) {
    let place = Place::new();
    let store = place.open().await;
    store.transaction(|tx| tx.execute_batch("CREATE TABLE payments (id TEXT)")).await.unwrap();
    let reserved = draft("reserved");
    create(&store, reserved.clone()).await;
    std::fs::write(full, "").unwrap();
    let refused = store.create(vec![draft("no room")]).await;
    assert!(matches!(&refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let pay = |tx: &semel_sqlite::Transaction<'_>| {
        tx.execute("INSERT INTO payments VALUES ('pay_1')", [])?;
        Ok::<_, rusqlite::Error>(((), complete()))
    };
    let unpaid = store.finish_with(Claim::of(&reserved), pay).await;
    assert!(matches!(&unpaid, Err(TransactionError::Store(StoreError::Unavailable(_)))), "{unpaid:?}");
    std::fs::remove_file(full).unwrap();
    assert_eq!(read(&store, "no room").await, None);
    assert_eq!(read(&store, "reserved").await.unwrap().state, State::InProgress);
    store.finish_with(Claim::of(&reserved), pay).await.unwrap();
    assert_eq!(read(&store, "reserved").await.unwrap().state, State::Completed);
}

#[tokio::test]
async fn a_closure_that_goes_on_after_everything_was_rolled_back_writes_nothing() {
    let place = Place::new();
    let store = SqliteOptions::new().max_file_size(300_000).open(place.path()).await.unwrap();
    let tables = "CREATE TABLE payments (id TEXT PRIMARY KEY); CREATE TABLE blobs (bytes BLOB)";
    store.transaction(move |tx| tx.execute_batch(tables)).await.unwrap();
    let reserved = draft("reserved");
    create(&store, reserved.clone()).await;
    let finished = store
        .finish_with(Claim::of(&reserved), |tx| {
            tx.execute("INSERT INTO payments VALUES ('pay_1')", [])?;
            // It is full, SQLite rolls the transaction back, and the closure takes it lightly.
            assert!(tx.execute("INSERT INTO blobs VALUES (zeroblob(1000000))", []).is_err());
            assert!(tx.execute("INSERT INTO payments VALUES ('pay_2')", []).is_err());
            Ok::<_, rusqlite::Error>(((), complete()))
        })
        .await;
    assert!(matches!(finished, Err(TransactionError::Store(StoreError::Unavailable(_)))), "{finished:?}");
    assert_eq!(read(&store, "reserved").await.unwrap().state, State::InProgress);
    let count = "SELECT count(*) FROM payments";
    let payments = store.query(move |conn, _| conn.query_row(count, [], |row| row.get::<_, i64>(0))).await;
    assert_eq!(payments.unwrap(), 0);
    assert_eq!(create(&store, draft("the next one")).await, Created::Inserted);
}

#[tokio::test]
async fn a_record_that_has_no_room_does_not_take_the_others_along() {
    let place = Place::new();
    let store = SqliteOptions::new().max_file_size(300_000).open(place.path()).await.unwrap();
    // While the writer is busy, both are queued: they are of one group then.
    let (entered, inside) = std::sync::mpsc::channel();
    let (go_on, waiting) = std::sync::mpsc::channel::<()>();
    let busy = tokio::spawn({
        let store = store.clone();
        let work = move |_: &semel_sqlite::Transaction<'_>| {
            entered.send(()).unwrap();
            waiting.recv().map_err(|_| ())
        };
        async move { store.transaction(work).await }
    });
    tokio::task::spawn_blocking(move || inside.recv().unwrap()).await.unwrap();
    let large = Draft { checkpoint: Some(vec![7; 1_000_000].into()), ..draft("large") };
    let mut large = std::pin::pin!(store.create(vec![large]));
    let mut small = std::pin::pin!(store.create(vec![draft("small")]));
    assert!(futures_are_pending(&mut large, &mut small).await);
    go_on.send(()).unwrap();
    let (large, small) = tokio::join!(large, small);
    assert!(matches!(&large, Err(StoreError::Unavailable(text)) if text.contains("full")), "{large:?}");
    assert_eq!(small.unwrap().items, [Created::Inserted]);
    busy.await.unwrap().unwrap();
}

/// Polls both once: from then on they are in the writer's queue.
async fn futures_are_pending(first: &mut (impl Future + Unpin), second: &mut (impl Future + Unpin)) -> bool {
    std::future::poll_fn(|context| {
        let first = std::pin::Pin::new(&mut *first).poll(context).is_pending();
        let second = std::pin::Pin::new(&mut *second).poll(context).is_pending();
        std::task::Poll::Ready(first && second)
    })
    .await
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_that_was_moved_away_takes_no_more_writes_until_it_is_back() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, draft("before")).await;
    let elsewhere = place.path().with_file_name("elsewhere.db");
    std::fs::rename(place.path(), &elsewhere).unwrap();
    let text = refused(&store, draft("during")).await;
    assert!(text.contains("moved"), "{text}");
    std::fs::write(place.path(), "").unwrap();
    refused(&store, draft("replaced")).await;
    std::fs::rename(&elsewhere, place.path()).unwrap();
    assert_eq!(create(&store, draft("during")).await, Created::Inserted);
}

#[tokio::test]
async fn reads_do_not_wait_for_a_writer_that_takes_its_time() {
    let place = Place::new();
    let store = place.open().await;
    create(&store, draft("there")).await;
    let (entered, inside) = std::sync::mpsc::channel();
    let (go_on, waiting) = std::sync::mpsc::channel::<()>();
    let slow = tokio::spawn({
        let store = store.clone();
        async move {
            store
                .transaction(move |tx| {
                    tx.execute_batch("CREATE TABLE slow (x)").unwrap();
                    entered.send(()).unwrap();
                    waiting.recv().map_err(|_| ())
                })
                .await
        }
    });
    tokio::task::spawn_blocking(move || inside.recv().unwrap()).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(5), store.read(vec![key("there")])).await;
    assert!(answer.unwrap().unwrap().items[0].is_some());
    go_on.send(()).unwrap();
    slow.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reading_that_panics_costs_nobody_a_reader() {
    let place = Place::new();
    let store = place.open().await;
    assert_eq!(create(&store, draft("kept")).await, Created::Inserted);
    for _ in 0..3 {
        let mistaken = |_: &rusqlite::Connection, _| -> rusqlite::Result<()> {
            panic!("a mistake of the application's")
        };
        let given_up = store.query(mistaken).await;
        assert!(matches!(given_up, Err(StoreError::Unavailable(_))), "{given_up:?}");
    }
    assert!(read(&store, "kept").await.is_some());
}
