//! Many callers, few commits; one caller, no waiting.

use crate::fixture::{Place, create, draft};
use semel::{Created, Store};
use semel_sqlite::SqliteOptions;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_callers_share_commits_up_to_a_bound() {
    let place = Place::new();
    let store = SqliteOptions::new().busy_timeout(Duration::from_secs(10)).open(place.path()).await.unwrap();
    // While another connection holds the lock, everything gathers behind the first.
    let holder = rusqlite::Connection::open(place.path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let tasks: Vec<_> = (0..1_500)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { create(&store, draft(&format!("key-{number}"))).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    holder.execute_batch("ROLLBACK").unwrap();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Created::Inserted);
    }
    let stats = store.stats();
    assert_eq!(stats.items, 1_500);
    assert!(stats.commits <= 150, "1500 creates took {} commits", stats.commits);
    assert!(stats.largest <= 1_024, "{stats:?}");
}

#[tokio::test]
async fn a_batch_is_one_commit_and_replays_alone_are_none() {
    let place = Place::new();
    let store = place.open().await;
    let batch: Vec<_> = (0..100).map(|number| draft(&format!("key-{number}"))).collect();
    store.create(batch.clone()).await.unwrap();
    assert_eq!((store.stats().commits, store.stats().items), (1, 100));
    let again = store.create(batch).await.unwrap();
    assert!(again.items.iter().all(|item| matches!(item, Created::Exists(_))));
    assert_eq!((store.stats().commits, store.stats().empty), (1, 1));
}

#[tokio::test]
async fn of_many_creates_of_one_key_at_once_one_is_inserted() {
    let place = Place::new();
    let store = place.open().await;
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { create(&store, draft("same")).await })
        })
        .collect();
    let mut inserted = 0;
    for task in tasks {
        inserted += usize::from(task.await.unwrap() == Created::Inserted);
    }
    assert_eq!(inserted, 1);
}
