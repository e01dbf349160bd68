//! A commit waits for a standby, and the wait ends in some other way.

use crate::fixture::{draft, key};
use crate::replicated::{Frozen, db, group, set, until, waiting};
use semel::{Created, Store, StoreError};
use semel_postgres::{PgOptions, PgStore, Replication};
use sqlx::Row;
use std::time::Duration;

async fn open(url: &str) -> PgStore {
    PgOptions::new().replication(Replication::Synchronous).connect(url).await.unwrap()
}

fn is_lost<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(
        matches!(answer, Err(StoreError::Lost(why)) if why.contains("no synchronous standby has it")),
        "{answer:?}"
    );
}

/// Reads nothing that a failover could take back.
async fn reads_nothing(store: &PgStore, name: &str) {
    let read = store.read(vec![key(name)]).await;
    assert!(
        matches!(&read, Err(StoreError::Unavailable(why)) if why.contains("may not be on a synchronous standby")),
        "{read:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_wait_is_cancelled_is_lost() {
    let (primary, standbys) = group(&["s1"]).await;
    let store = open(&primary.url("postgres")).await;
    store.create(vec![draft("warm")]).await.unwrap();
    let db = db(&primary).await;
    let frozen = Frozen::receiver_of(&standbys[0]).await;
    let creating = tokio::spawn({
        let store = store.clone();
        async move { store.create(vec![draft("cancelled")]).await }
    });
    for pid in waiting(&db, 1).await {
        sqlx::query("SELECT pg_cancel_backend($1)").bind(pid).execute(&db).await.unwrap();
    }
    is_lost(&creating.await.unwrap());
    // It is visible on the primary, and only there.
    let there = sqlx::query("SELECT count(*) FROM semel_records WHERE key = 'cancelled'");
    assert_eq!(there.fetch_one(&db).await.unwrap().get::<i64, _>(0), 1);

    // The read-back is behind a commit that waits.
    let reading = tokio::spawn({
        let store = store.clone();
        async move { store.read(vec![key("cancelled")]).await }
    });
    waiting(&db, 1).await;
    drop(frozen);
    let read = reading.await.unwrap().unwrap();
    assert!(read.items[0].is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_released_without_a_standby_is_lost() {
    let (primary, standbys) = group(&["s1"]).await;
    let store = open(&primary.url("postgres")).await;
    store.create(vec![draft("warm")]).await.unwrap();
    let db = db(&primary).await;
    let frozen = Frozen::receiver_of(&standbys[0]).await;
    let creating = tokio::spawn({
        let store = store.clone();
        async move { store.create(vec![draft("released")]).await }
    });
    waiting(&db, 1).await;
    // Long enough that nobody can tell whether it was waited for. The server says nothing.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    set(&primary, "synchronous_standby_names", "").await;
    is_lost(&creating.await.unwrap());
    reads_nothing(&store, "released").await;

    drop(frozen);
    set(&primary, "synchronous_standby_names", "s1").await;
    until(async || store.risk().reason().is_none()).await;
    let read = store.read(vec![key("released")]).await.unwrap();
    assert!(read.items[0].is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_a_standby_has_after_a_while_counts() {
    let (primary, standbys) = group(&["s1"]).await;
    let store = open(&primary.url("postgres")).await;
    store.create(vec![draft("warm")]).await.unwrap();
    let db = db(&primary).await;
    let frozen = Frozen::receiver_of(&standbys[0]).await;
    let creating = tokio::spawn({
        let store = store.clone();
        async move { store.create(vec![draft("slow")]).await }
    });
    waiting(&db, 1).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    drop(frozen);
    assert_eq!(creating.await.unwrap().unwrap().items, [Created::Inserted]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_commits_are_abandoned_until_one_goes_through() {
    let (primary, standbys) = group(&["s1"]).await;
    let store = open(&primary.url("postgres")).await;
    store.create(vec![draft("warm")]).await.unwrap();
    let db = db(&primary).await;
    let frozen = Frozen::receiver_of(&standbys[0]).await;
    for number in 1..=2 {
        let creating = tokio::spawn({
            let store = store.clone();
            async move { store.create(vec![draft(&format!("abandoned-{number}"))]).await }
        });
        waiting(&db, number).await;
        creating.abort();
        assert!(creating.await.unwrap_err().is_cancelled());
    }
    // Those two wait for ever, and so does the probe; no other is sent after them.
    for number in 0..20 {
        let refused = store.create(vec![draft(&format!("refused-{number}"))]).await;
        assert!(
            matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("does not finish commits")),
            "{refused:?}"
        );
    }
    assert_eq!(waiting(&db, 3).await.len(), 3);

    drop(frozen);
    until(async || store.create(vec![draft("after")]).await.is_ok()).await;
    let refused = sqlx::query("SELECT count(*) FROM semel_records WHERE key LIKE 'refused-%'");
    assert_eq!(refused.fetch_one(&db).await.unwrap().get::<i64, _>(0), 0);
}
