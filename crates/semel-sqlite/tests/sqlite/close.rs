//! Ending: what is queued is done, nothing is left behind.

use crate::fixture::{Place, create, draft, read};
use semel::{Created, Store, StoreError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_when_the_store_closes_is_done_or_refused_but_never_half() {
    let place = Place::new();
    let store = place.open().await;
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let store = store.clone();
            let name = format!("key-{number}");
            tokio::spawn(async move { (store.create(vec![draft(&name)]).await, name) })
        })
        .collect();
    store.close().await;
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    let reopened = place.open().await;
    for (answer, name) in answers {
        let there = read(&reopened, &name).await.is_some();
        match answer {
            Ok(_) => assert!(there, "{name} was acknowledged"),
            Err(StoreError::Unavailable(_)) => assert!(!there, "{name} was refused"),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}

#[tokio::test]
async fn closing_tidies_the_log_away_and_other_handles_are_told() {
    let place = Place::new();
    let store = place.open().await;
    let other = store.clone();
    assert_eq!(create(&store, draft("kept")).await, Created::Inserted);
    store.close().await;
    let log = place.path().with_extension("db-wal");
    assert!(!log.exists());
    assert!(matches!(other.create(vec![draft("late")]).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(other.recall("x".into()).await, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn a_closure_may_drop_the_last_handle_on_the_writers_own_thread() {
    let place = Place::new();
    let store = place.open().await;
    let held = store.clone();
    let (entered, inside) = std::sync::mpsc::channel();
    let (go_on, waiting) = std::sync::mpsc::channel::<()>();
    let (dropped, done) = std::sync::mpsc::channel();
    let caller = tokio::spawn(async move {
        let work = move |_: &semel_sqlite::Transaction<'_>| {
            entered.send(()).unwrap();
            waiting.recv().unwrap();
            drop(held);
            dropped.send(()).map_err(drop)
        };
        store.transaction(work).await
    });
    tokio::task::spawn_blocking(move || inside.recv().unwrap()).await.unwrap();
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    go_on.send(()).unwrap();
    let patience = std::time::Duration::from_secs(10);
    tokio::task::spawn_blocking(move || done.recv_timeout(patience).unwrap()).await.unwrap();
    assert_eq!(create(&place.open().await, draft("after")).await, Created::Inserted);
}

#[tokio::test]
async fn a_caller_that_has_gone_before_its_turn_wrote_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { create(&store, draft("first")).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let hasty =
        tokio::time::timeout(std::time::Duration::from_millis(50), store.create(vec![draft("hasty")])).await;
    assert!(hasty.is_err());
    conn.execute_batch("ROLLBACK").unwrap();
    assert_eq!(first.await.unwrap(), Created::Inserted);
    create(&store, draft("after")).await;
    assert_eq!(read(&store, "hasty").await, None);
}
