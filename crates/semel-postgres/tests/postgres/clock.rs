//! A server whose clock jumps: it is not believed, by whoever runs and by whoever starts.

use crate::fixture::{completion, draft, key, number, read, reserved, swap};
use crate::server_clock::{Driven, ServerClock};
use semel::clock::{ClockRequest, Terms};
use semel::{Store, StoreError, Swapped, Timestamp};
use semel_postgres::{PgOptions, PgStore, Reserved, reserve_in};
use semel_testing::database::Database;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use std::time::Duration;

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// Beyond every window of the default policy.
const JUMP: i64 = 60 * DAY;

async fn open(clock: &ServerClock) -> PgStore {
    PgStore::connect(&clock.url()).await.expect("the database opens")
}

async fn completed(store: &PgStore, name: &str) {
    let record = reserved(store, name).await;
    assert_eq!(swap(store, completion(&record)).await, Swapped::Done);
}

/// What the reaper does.
async fn forgets(store: &PgStore) -> (usize, usize) {
    let dropped = store.drop_answers(100).await.unwrap().items.len();
    (dropped, store.purge(100).await.unwrap().items.len())
}

#[tokio::test]
async fn a_start_after_the_servers_clock_jumped_forgets_nothing() {
    let database = Database::new().await;
    let clock = ServerClock::of(&database).await;
    let store = open(&clock).await;
    completed(&store, "paid").await;
    let before = store.read(vec![]).await.unwrap().now;
    store.close().await;
    clock.jump(JUMP).await;
    // One start for three seconds, then another, as in a crash loop.
    for _ in 0..3 {
        let store = open(&clock).await;
        let now = store.read(vec![]).await.unwrap().moment();
        assert!(now.is_held() && now.latest >= before.plus_millis(JUMP), "{now:?}");
        assert_eq!(forgets(&store).await, (0, 0));
        let record = read(&store, "paid").await.expect("it is remembered");
        assert!(!record.times.expires.unwrap().has_come(now.earliest), "{now:?}");
        store.close().await;
    }
    clock.jump(-JUMP).await;
    let store = open(&clock).await;
    let now = store.read(vec![]).await.unwrap().moment();
    assert!(!now.is_held() && now.latest < before.plus_millis(DAY), "{now:?}");
    assert!(read(&store, "paid").await.is_some());
}

trait Plus {
    fn plus_millis(self, millis: i64) -> Timestamp;
}

impl Plus for Timestamp {
    fn plus_millis(self, millis: i64) -> Timestamp {
        Timestamp::from_millis(self.as_millis() + millis)
    }
}

#[tokio::test]
async fn an_applications_own_transaction_sees_the_hold() {
    let database = Database::new().await;
    let clock = ServerClock::of(&database).await;
    let store = open(&clock).await;
    let before = store.read(vec![]).await.unwrap().now;
    clock.jump(JUMP).await;
    assert!(store.clock(ClockRequest::Look).await.unwrap().is_held());

    let mut conn = PgConnection::connect(&clock.url()).await.unwrap();
    let mut transaction = conn.begin().await.unwrap();
    let reserved = reserve_in(&mut transaction, draft("local")).await.unwrap();
    let Reserved::New(record) = reserved else { panic!("it is new: {reserved:?}") };
    transaction.commit().await.unwrap();
    assert_eq!(store.read(vec![key("local")]).await.unwrap().items, [Some(*record.clone())]);
    let soon = before.plus_millis(DAY);
    assert!(
        record.times.created < soon && record.times.lease < soon,
        "leases go by the earliest: {record:?}"
    );
}

#[tokio::test]
async fn what_is_purged_is_judged_in_the_commit_that_purges_it() {
    let database = Database::new().await;
    let (clock, db) = (ServerClock::of(&database).await, database.pool().await);
    let (store, other) = (open(&clock).await, open(&clock).await);
    completed(&store, "paid").await;
    // The jump comes after the last look that either of them had.
    forgets(&other).await;
    clock.jump(JUMP).await;
    assert_eq!((forgets(&store).await, forgets(&other).await), ((0, 0), (0, 0)));
    assert_eq!(number(&db, "SELECT count(*) FROM semel_records").await, 1);
    // What one is told, the other goes by.
    store.clock(ClockRequest::Accept).await.unwrap();
    assert_eq!(forgets(&other).await, (1, 1));
}

async fn open_by(clock: &Driven, terms: Terms) -> PgStore {
    let options = PgOptions::new().clock(clock.clone()).clock_terms(terms);
    options.connect(&clock.server.url()).await.expect("the database opens")
}

#[tokio::test]
async fn an_instance_that_alone_expects_a_later_time_fails_closed_and_moves_nobody() {
    let database = Database::new().await;
    let clock = Driven::of(&database).await;
    let off = clock.another();
    let (wrong, right) = (open_by(&off, Terms::default()).await, open_by(&clock, Terms::default()).await);
    let before = right.read(vec![]).await.unwrap().now;
    // A mark of the one that is right.
    clock.pass(Duration::from_secs(40));
    off.leap(Duration::from_secs(40));
    right.clock(ClockRequest::Look).await.unwrap();

    off.leap(Duration::from_secs(24 * 60 * 60));
    let refused = wrong.read(vec![key("paid")]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused = wrong.create(vec![draft("paid")]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let mut transaction = right.pool().begin().await.unwrap();
    assert!(wrong.reserve_in(&mut transaction, draft("paid")).await.is_err());
    drop(transaction);
    assert!(wrong.clock(ClockRequest::Look).await.unwrap().wrong.is_some(), "it says so");

    let now = right.read(vec![]).await.unwrap().moment();
    assert_eq!((now.earliest, now.latest), (before.plus_millis(40_000), before.plus_millis(40_000)));
    completed(&right, "paid").await;
}

#[tokio::test]
async fn a_mark_is_left_though_nobody_asks_for_anything() {
    let database = Database::new().await;
    let (clock, db) = (Driven::of(&database).await, database.pool().await);
    // It looks ten times as often as a hold is long.
    let terms = Terms { hold: Duration::from_secs(1), ..Terms::default() };
    let _store = open_by(&clock, terms).await;
    let mark = || number(&db, "SELECT trusted_at FROM semel_clock");
    let before = mark().await;
    clock.pass(Duration::from_secs(60));
    tokio::time::timeout(Duration::from_secs(30), async {
        while mark().await < before + 60_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("a mark is left");
}

#[tokio::test]
async fn after_the_server_was_away_no_lease_is_judged_over_before_one_has_passed() {
    let database = Database::new().await;
    let clock = Driven::of(&database).await;
    let store = open_by(&clock, Terms::default()).await;
    clock.pass(Duration::from_secs(600));
    assert_eq!(store.read(vec![]).await.unwrap().steady, Duration::from_secs(600));
    // The call that finds it away, and the first that does not.
    let pool = database.pool().await;
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE semel_records IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(100), store.read(vec![key("paid")])).await;
    assert!(waiting.is_err(), "it gave up: {waiting:?}");
    clock.pass(Duration::from_secs(60));
    lock.rollback().await.unwrap();
    assert_eq!(store.read(vec![]).await.unwrap().steady, Duration::ZERO);
    clock.pass(Duration::from_secs(30));
    assert_eq!(store.read(vec![]).await.unwrap().steady, Duration::from_secs(30));
}

#[tokio::test]
async fn a_hold_that_a_build_before_opened_stays_open() {
    let database = Database::new().await;
    let (clock, db) = (Driven::of(&database).await, database.pool().await);
    let store = open_by(&clock, Terms::default()).await;
    let before = store.read(vec![]).await.unwrap().now;
    store.close().await;
    // As a database of schema 4, whose last program saw the server's clock jump.
    let earlier = "DROP TABLE semel_audit; ALTER TABLE semel_clock DROP COLUMN hold;
        UPDATE semel_meta SET value = 4 WHERE name = 'schema_version'; UPDATE semel_clock SET behind = 86400000";
    sqlx::raw_sql(earlier).execute(&db).await.unwrap();
    PgStore::migrate(&db).await.unwrap();
    clock.server.jump(DAY).await;
    let now = open_by(&clock, Terms::default()).await.read(vec![]).await.unwrap().moment();
    assert_eq!((now.earliest, now.latest), (before, before.plus_millis(DAY)));
    assert_eq!(number(&db, "SELECT hold FROM semel_clock").await, DAY);
}
