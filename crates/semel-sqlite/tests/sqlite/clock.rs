//! A clock that leaps may cause doubt, never an execution.

use crate::fixture::{Place, create, draft, read};
use semel::{DueKind, DueQuery, Store, Timestamp};
use semel_sqlite::{Clock, SqliteOptions, SqliteStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

const NOON: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 60 * 60 * 1_000;

#[derive(Clone, Default)]
struct Hands(Arc<(AtomicI64, AtomicI64)>);

impl Hands {
    fn at(wall: i64) -> Self {
        let hands = Self::default();
        hands.0.0.store(wall, SeqCst);
        hands
    }

    fn pass(&self, millis: i64) {
        self.0.0.fetch_add(millis, SeqCst);
        self.0.1.fetch_add(millis, SeqCst);
    }

    fn leap(&self, millis: i64) {
        self.0.0.fetch_add(millis, SeqCst);
    }
}

impl Clock for Hands {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0.0.load(SeqCst).try_into().unwrap())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.1.load(SeqCst).try_into().unwrap())
    }
}

async fn open(place: &Place, hands: &Hands) -> SqliteStore {
    SqliteOptions::new().clock(hands.clone()).open(place.path()).await.unwrap()
}

async fn write_now(store: &SqliteStore, name: &str) -> i64 {
    store.create(vec![draft(name)]).await.unwrap().now.as_millis()
}

async fn read_now(store: &SqliteStore) -> i64 {
    store.read(vec![]).await.unwrap().now.as_millis()
}

#[tokio::test]
async fn time_is_the_wall_clocks_while_it_behaves() {
    let (place, hands) = (Place::new(), Hands::at(NOON));
    let store = open(&place, &hands).await;
    assert_eq!(write_now(&store, "a").await, NOON);
    hands.pass(1_500);
    assert_eq!(read_now(&store).await, NOON + 1_500);
    // A small step is followed.
    hands.leap(900);
    assert_eq!(write_now(&store, "b").await, NOON + 2_400);
    assert_eq!(read(&store, "b").await.unwrap().times.created, Timestamp::from_millis(NOON + 2_400));
}

#[tokio::test]
async fn a_leap_ahead_is_not_followed_and_nothing_falls_due_by_it() {
    let (place, hands) = (Place::new(), Hands::at(NOON));
    let store = open(&place, &hands).await;
    create(&store, draft("leased")).await;
    hands.leap(365 * DAY);
    hands.pass(1_000);
    assert_eq!(read_now(&store).await, NOON + 1_000);
    assert_eq!(write_now(&store, "b").await, NOON + 1_000);
    let leases = DueQuery { kind: DueKind::Lease, after: None, limit: 10 };
    assert_eq!(store.due(leases).await.unwrap().items, vec![]);
    // Once it is put right, it is followed again.
    hands.leap(-365 * DAY);
    hands.pass(29_500);
    assert_eq!(store.due(leases).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_leap_back_is_not_followed_either() {
    let (place, hands) = (Place::new(), Hands::at(NOON));
    let store = open(&place, &hands).await;
    assert_eq!(write_now(&store, "a").await, NOON);
    hands.leap(-DAY);
    hands.pass(5_000);
    assert_eq!(write_now(&store, "b").await, NOON + 5_000);
    hands.pass(5_000);
    assert_eq!(read_now(&store).await, NOON + 10_000);
}

#[tokio::test]
async fn time_never_falls_behind_the_file_and_goes_on_from_there() {
    let (place, hands) = (Place::new(), Hands::at(NOON));
    assert_eq!(write_now(&open(&place, &hands).await, "a").await, NOON);
    // The process starts anew, the wall clock a day behind.
    let behind = Hands::at(NOON - DAY);
    let store = open(&place, &behind).await;
    assert_eq!(read_now(&store).await, NOON);
    behind.pass(3_000);
    assert_eq!(write_now(&store, "b").await, NOON + 3_000);
}

#[tokio::test]
async fn processes_that_share_the_file_share_its_time() {
    let place = Place::new();
    let (slow, fast) = (Hands::at(NOON), Hands::at(NOON + 60_000));
    let (behind, ahead) = (open(&place, &slow).await, open(&place, &fast).await);
    assert_eq!(write_now(&behind, "a").await, NOON);
    assert_eq!(write_now(&ahead, "b").await, NOON + 60_000);
    slow.pass(1_000);
    assert!(write_now(&behind, "c").await >= NOON + 60_000);
}

#[tokio::test]
async fn many_small_steps_do_not_add_up_to_a_leap() {
    let (place, hands) = (Place::new(), Hands::at(NOON));
    let store = open(&place, &hands).await;
    for _ in 0..1_000 {
        hands.pass(10);
        hands.leap(1_900);
        read_now(&store).await;
    }
    // Ten seconds went by: at most the tolerance may have been added to them.
    assert!(read_now(&store).await <= NOON + 10_000 + 2_000);
}
