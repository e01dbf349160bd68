//! The file fails: the answer comes in bounded time, says what is certain, and the store works again afterwards.

use crate::fixture::{Place, create, draft, key, read};
use rusqlite::Connection;
use semel::{Created, Draft, Store, StoreError};
use semel_sqlite::{SqliteOptions, SqliteStore, TransactionError};
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
