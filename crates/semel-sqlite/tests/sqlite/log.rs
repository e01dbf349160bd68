//! Checkpoints run beside the writer, and the WAL is restarted however long writes go on.

use crate::fixture::{Place, create, draft, read};
use semel::Created;
use semel_sqlite::{SqliteOptions, SqliteStore};
use std::time::{Duration, Instant};

/// Pages after which the log is copied here.
const EVERY: u32 = 40;

/// A page with its place in the log.
const PAGE: u64 = 4096 + 24;

async fn open(place: &Place) -> SqliteStore {
    SqliteOptions::new().dangerously_without_fsync().checkpoint_pages(EVERY).open(place.path()).await.unwrap()
}

fn pages_in_log(place: &Place) -> u64 {
    std::fs::metadata(place.path().with_extension("db-wal")).unwrap().len() / PAGE
}

#[tokio::test]
async fn what_is_in_the_log_is_copied_without_another_commit() {
    let place = Place::new();
    let store = open(&place).await;
    let file = || std::fs::metadata(place.path()).unwrap().len();
    let before = file();
    let mut number = 0;
    while pages_in_log(&place) < u64::from(EVERY) * 2 {
        assert_eq!(create(&store, draft(&format!("key-{number}"))).await, Created::Inserted);
        number += 1;
    }
    // The writer would do it itself only where the log is longer.
    let commits = store.stats().commits;
    let begun = Instant::now();
    while file() == before {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was copied into the file");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.stats().commits, commits);
}

#[tokio::test]
async fn the_log_stays_short_while_writes_go_on() {
    let place = Place::new();
    let store = open(&place).await;
    let mut longest = 0;
    for number in 0..2_000 {
        assert_eq!(create(&store, draft(&format!("key-{number}"))).await, Created::Inserted);
        longest = longest.max(pages_in_log(&place));
    }
    // Each commit writes several pages, so that without restarts the WAL would have ten thousand.
    assert!(longest < 2_000, "{longest} pages");
    for number in [0, 1_000, 1_999] {
        assert!(read(&store, &format!("key-{number}")).await.is_some());
    }
    store.close().await;
    let reopened = place.open().await;
    assert!(read(&reopened, "key-1999").await.is_some());
}
