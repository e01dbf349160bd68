//! A clock that leaps may cause doubt, never an execution.

use crate::fixture::{Place, complete, create, draft, read};
use semel::clock::{ClockRequest, SystemClock, Terms};
use semel::transition::{Change, Claim, act};
use semel::{DueKind, DueQuery, Store, StoreError, Swap, Swapped, Timestamp};
use semel_sqlite::{Clock, SqliteOptions, SqliteStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};

const NOON: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 60 * 60 * 1_000;

#[derive(Clone, Default)]
struct Hands(Arc<(AtomicI64, AtomicI64, AtomicBool)>);

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

    /// What the kernel says of its clock.
    fn synchronised(&self, synchronised: bool) {
        self.0.2.store(synchronised, SeqCst);
    }
}

impl Clock for Hands {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0.0.load(SeqCst).try_into().unwrap())
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.1.load(SeqCst).try_into().unwrap())
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        Some(self.0.2.load(SeqCst))
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
    // The process starts again, the wall clock half an hour behind.
    let behind = Hands::at(NOON - HOUR / 2);
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
    create(&store, draft("leased")).await;
    for _ in 0..10_000 {
        hands.pass(10);
        hands.leap(1_900);
        read_now(&store).await;
    }
    // A hundred seconds went by, and five hours by the clock: one step may have been followed, and no lease is over by it.
    assert!(read_now(&store).await <= NOON + 100_000 + HOUR + 10_000);
    assert!(store.read(vec![]).await.unwrap().moment().is_held());
}

const HOUR: i64 = 60 * 60 * 1_000;

/// Key "kept", completed, on a file whose last process has ended.
async fn completed(place: &Place) {
    let store = open(place, &Hands::at(NOON)).await;
    finish(&store, "kept").await;
    store.close().await;
}

async fn finish(store: &SqliteStore, name: &str) {
    create(store, draft(name)).await;
    let record = read(store, name).await.unwrap();
    let Ok(Change::Put { next, history }) = act(&record, &Claim::of(&record), &complete()) else {
        panic!("the owner may complete")
    };
    let swap = Swap { expected: record.expected(), next, history };
    assert_eq!(store.swap(vec![swap]).await.unwrap().items, vec![Swapped::Done]);
}

async fn purged(store: &SqliteStore) -> usize {
    store.purge(10).await.unwrap().items.len() + store.drop_answers(10).await.unwrap().items.len()
}

#[tokio::test]
async fn one_start_with_a_wrong_clock_purges_nothing_and_leaves_the_time_alone() {
    let place = Place::new();
    completed(&place).await;
    let wrong = Hands::at(NOON + 300 * DAY);
    let store = open(&place, &wrong).await;
    wrong.pass(3_000);
    assert_eq!(purged(&store).await, 0);
    finish(&store, "meanwhile").await;
    store.close().await;
    let right = Hands::at(NOON + 10_000);
    let store = open(&place, &right).await;
    assert_eq!(write_now(&store, "after").await, NOON + 10_000);
    assert!(read(&store, "kept").await.is_some());
    assert!(!store.clock(ClockRequest::Look).await.unwrap().is_held());
}

#[tokio::test]
async fn a_hold_ends_once_the_kernel_reports_a_synchronised_clock_for_a_quarter_of_an_hour() {
    let place = Place::new();
    completed(&place).await;
    let hands = Hands::at(NOON + 300 * DAY);
    let store = open(&place, &hands).await;
    let held = async |minutes: usize| {
        for _ in 0..minutes {
            hands.pass(60_000);
            store.clock(ClockRequest::Look).await.unwrap();
        }
        store.clock(ClockRequest::Look).await.unwrap().is_held()
    };
    assert!(held(60).await, "time alone ends nothing");
    hands.synchronised(true);
    assert!(held(15).await);
    assert_eq!(purged(&store).await, 0);
    assert!(!held(1).await);
    assert_eq!(read_now(&store).await, NOON + 300 * DAY + 76 * 60_000);
    assert_eq!(purged(&store).await, 2, "the record and its answer: the clock was right");
}

#[tokio::test]
async fn of_two_processes_the_one_with_the_wrong_clock_fails_and_does_not_move_the_other() {
    let place = Place::new();
    completed(&place).await;
    let right = Hands::at(NOON + 10_000);
    let one = open(&place, &right).await;
    assert_eq!(write_now(&one, "a").await, NOON + 10_000);
    let wrong = Hands::at(NOON + 300 * DAY);
    let other = open(&place, &wrong).await;
    assert_eq!(purged(&other).await, 0);
    right.pass(1_000);
    assert_eq!(write_now(&one, "b").await, NOON + 11_000);
    wrong.pass(1_000);
    let refused = other.create(vec![draft("c")]).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Unavailable(why) if why.contains("put it right")), "{refused}");
    assert!(other.read(vec![]).await.is_err());
    let report = other.clock(ClockRequest::Look).await.unwrap();
    assert!(report.wrong.is_some());
    assert!(other.clock(ClockRequest::Accept).await.is_err());
    right.pass(1_000);
    assert_eq!(write_now(&one, "d").await, NOON + 12_000);
    assert!(!one.read(vec![]).await.unwrap().moment().is_held());
    wrong.pass(1_000);
    wrong.leap(-(300 * DAY - 10_000));
    assert_eq!(write_now(&other, "e").await, NOON + 12_000);
}

#[tokio::test]
async fn a_transaction_of_an_applications_own_sees_the_hold() {
    let place = Place::new();
    let store = place.open().await;
    let before = store.read(vec![]).await.unwrap().now;
    finish(&store, "kept").await;
    let mut conn = rusqlite::Connection::open(place.path()).unwrap();
    // As after a jump: what the machine's clock says is a day ahead of what the file trusts.
    conn.execute("UPDATE semel_clock SET now = now - ?1, behind = ?1", [DAY]).unwrap();
    let record = transaction(&mut conn, |tx| {
        let record = reserved(tx, "own");
        semel_sqlite::act_in(tx, &Claim::of(&record), &complete()).unwrap().unwrap()
    });
    let early = before.as_millis() - DAY;
    assert!((early..early + 60_000).contains(&record.times.created.as_millis()), "{:?}", record.times);
    assert!(record.times.expires.unwrap() >= before.plus(semel::Policy::default().retention));
}

#[tokio::test]
async fn a_hold_that_a_build_before_opened_stays_open() {
    let place = Place::new();
    place.open().await.close().await;
    completed(&place).await;
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    // As a file of schema 4, whose last program saw its clock jump.
    conn.execute_batch(
        "DROP TABLE semel_audit; ALTER TABLE semel_clock DROP COLUMN hold; UPDATE semel_meta SET value = 4 WHERE name = 'schema_version';
         UPDATE semel_clock SET behind = 86400000",
    )
    .unwrap();
    let store = open(&place, &Hands::at(NOON + DAY)).await;
    let now = store.read(vec![]).await.unwrap().moment();
    assert_eq!((now.earliest.as_millis(), now.latest.as_millis()), (NOON, NOON + DAY));
    let hold: i64 = conn.query_row("SELECT hold FROM semel_clock", [], |row| row.get(0)).unwrap();
    assert_eq!(hold, DAY);
}

/// A machine whose clock has just been set `ahead` of what the open store has seen of it. An application's own transaction sees it first.
async fn stepped(place: &Place, ahead: i64) -> (SqliteStore, rusqlite::Connection) {
    let hands = Hands::at(SystemClock.wall_millis() - ahead);
    let terms = Terms { max_step: Duration::from_secs(150), ..Terms::default() };
    let store = SqliteOptions::new().clock(hands).clock_terms(terms).open(place.path()).await.unwrap();
    finish(&store, "kept").await;
    (store, rusqlite::Connection::open(place.path()).unwrap())
}

fn transaction<T>(conn: &mut rusqlite::Connection, work: impl FnOnce(&rusqlite::Connection) -> T) -> T {
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
    let came_to = work(&tx);
    tx.commit().unwrap();
    came_to
}

fn reserved(conn: &rusqlite::Connection, name: &str) -> semel::Record {
    match semel_sqlite::reserve_in(conn, draft(name)).unwrap() {
        semel_sqlite::Reserved::New(record) => *record,
        semel_sqlite::Reserved::Exists(_) => panic!("nobody has that key"),
    }
}

#[tokio::test]
async fn an_applications_own_transaction_does_not_carry_the_stores_time_along_with_a_step() {
    let place = Place::new();
    let (store, mut conn) = stepped(&place, 40 * 60 * 1_000).await;
    let before = read_now(&store).await;
    for number in 0..30 {
        transaction(&mut conn, |tx| reserved(tx, &format!("own-{number}")));
        assert_eq!(read_now(&store).await, before, "after {number} transactions");
    }
    assert_eq!(transaction(&mut conn, |tx| semel_sqlite::time_in(tx).unwrap()).as_millis(), before);
    assert!(!store.read(vec![]).await.unwrap().moment().is_held());
}

#[tokio::test]
async fn an_applications_own_transaction_stamps_windows_by_the_latest_time_and_leases_by_the_earliest() {
    let place = Place::new();
    let (store, mut conn) = stepped(&place, 40 * 60 * 1_000).await;
    let now = store.read(vec![]).await.unwrap().now;
    let claimed = SystemClock.wall_millis();
    let record = transaction(&mut conn, |tx| {
        let record = reserved(tx, "own");
        semel_sqlite::act_in(tx, &Claim::of(&record), &complete()).unwrap().unwrap()
    });
    let policy = semel::Policy::default();
    assert!(record.times.lease <= now.plus(policy.lease + Duration::from_secs(60)), "{:?}", record.times);
    let expires = record.times.expires.unwrap();
    assert!(expires >= Timestamp::from_millis(claimed).plus(policy.retention), "{:?}", record.times);
}

#[tokio::test]
async fn an_applications_own_transaction_stamps_nothing_by_a_clock_that_is_behind_the_mark() {
    let place = Place::new();
    let (store, mut conn) = stepped(&place, -30 * 60 * 1_000).await;
    let refused = transaction(&mut conn, |tx| semel_sqlite::reserve_in(tx, draft("own")));
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("behind the file's last mark"), "{why}");
    assert!(read(&store, "own").await.is_none());
}

/// Such a transaction leaves the first mark: without one, the next start would believe any clock.
#[tokio::test]
async fn an_applications_own_transaction_leaves_the_first_mark() {
    let place = Place::new();
    place.open().await.close().await;
    let mut conn = rusqlite::Connection::open(place.path()).unwrap();
    transaction(&mut conn, |tx| reserved(tx, "own"));
    let wrong = Hands::at(SystemClock.wall_millis() + 300 * DAY);
    let store = open(&place, &wrong).await;
    assert!(store.read(vec![]).await.unwrap().moment().is_held());
}

#[tokio::test]
async fn a_mark_is_left_though_nobody_asks_for_anything_and_is_never_older_than_a_minute() {
    let (place, hands) = (Place::new(), Hands::at(NOON));
    // It looks ten times as often as a hold is long.
    let terms = Terms { hold: Duration::from_secs(1), ..Terms::default() };
    let options = SqliteOptions::new().clock(hands.clone()).clock_terms(terms);
    let store = options.open(place.path()).await.unwrap();
    write_now(&store, "a").await;
    let file = rusqlite::Connection::open(place.path()).unwrap();
    let mark = || file.query_row("SELECT now FROM semel_clock", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(mark(), NOON);
    // The next look of one that comes once a minute is another half a minute away: it must not be the first to write.
    hands.pass(31_000);
    tokio::time::timeout(Duration::from_secs(30), async {
        while mark() < NOON + 31_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("a mark is left");
}

#[tokio::test]
async fn a_file_whose_time_an_earlier_build_led_ahead_serves_nothing_until_that_is_accepted() {
    let place = Place::new();
    let conn = rusqlite::Connection::open(place.path()).unwrap();
    for schema in [
        include_str!("../../src/schema_1.sql"),
        include_str!("../../src/schema_2.sql"),
        include_str!("../../src/schema_3.sql"),
    ] {
        conn.execute_batch(schema).unwrap();
    }
    // It went by the highest time that it had ever seen.
    conn.execute("UPDATE semel_clock SET now = ?1", [NOON + 30 * DAY]).unwrap();
    conn.execute_batch(
        "INSERT INTO semel_meta (name, value) VALUES ('schema_version', 3), ('compatible_with', 3)",
    )
    .unwrap();
    let hands = Hands::at(NOON);
    let store = open(&place, &hands).await;
    let refused = store.create(vec![draft("a")]).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Unavailable(why) if why.contains("semel clock accept")),
        "{refused}"
    );
    store.clock(ClockRequest::Accept).await.unwrap();
    hands.pass(1_000);
    let now = write_now(&store, "a").await;
    assert!((NOON + 30 * DAY..=NOON + 30 * DAY + 1_000).contains(&now), "{}", now - NOON);
}
