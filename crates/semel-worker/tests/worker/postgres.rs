//! On PostgreSQL: several processes' workers on one database, whose clock is the only one.

use crate::bank::Bank;
use crate::interposed::Interposed;
use crate::support::{Shop, key};
use crate::workers::killed_workers_leave_nothing_behind;
use semel::observe::Event;
use semel::{DueKind, DueQuery, Policy, Settling, State, Store};
use semel_conformance::Hands;
use semel_postgres::PgStore;
use semel_testing::database::Database;
use semel_worker::{Asking, Reaped, ReaperOptions};
use sqlx::{Connection as _, Row as _};
use std::sync::Arc;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(3600);

/// The server's clock cannot be moved by a test.
struct NoHands;

impl Hands for NoHands {
    fn jump(&self, _by: Duration) {
        unreachable!("nobody moves the server's clock")
    }

    fn come_back(&self, _by: Duration) {
        unreachable!("nobody moves the server's clock")
    }

    fn forward(&self, _: Duration) {
        unreachable!("the server's clock is not moved")
    }

    fn back(&self, _: Duration) {
        unreachable!("the server's clock is not moved")
    }
}

async fn way(database: &Database) -> Interposed {
    Interposed::over(Arc::new(PgStore::connect(&database.url()).await.unwrap()))
}

async fn shop(database: &Database, policy: Policy) -> Shop {
    Shop::through(way(database).await, Arc::new(NoHands), policy)
}

/// Waits until so many are due by the server's clock; the test's own does not matter.
async fn until_due(shop: &Shop, kind: DueKind, count: usize) {
    let due = async {
        loop {
            let query = DueQuery { kind, after: None, limit: count };
            if shop.store.due(query).await.unwrap().items.len() == count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), due).await.expect("they become due");
}

#[tokio::test]
async fn three_workers_that_are_killed_and_replaced_settle_everything_once() {
    let database = Database::without_records().await;
    let bank = Bank::completing("paid").closed();
    // Longer than it takes to kill somebody, and short enough to wait for: what was not answered is asked again after it.
    let asking = Asking { every: SHORT, attempts: 1000, deadline: SHORT * 10, ..bank.asking() };
    let policy = Policy { lease: SHORT, settling: asking.settling(), ..Policy::default() };
    let shop = Shop { asking: Some(asking), ..shop(&database, policy).await };
    let process = async || shop.elsewhere(way(&database).await);
    killed_workers_leave_nothing_behind(&shop, &bank, process, || {}).await;
}

#[tokio::test]
async fn of_three_processes_one_asks_and_one_moves_each_lease_on() {
    const RECORDS: u32 = 7;
    let database = Database::without_records().await;
    let bank = Bank::unclear();
    let asking = Asking { every: SHORT, deadline: LONG, ..bank.asking() };
    let policy = Policy { lease: SHORT, settling: asking.settling(), ..Policy::default() };
    let shop = Shop { asking: Some(asking), ..shop(&database, policy).await };
    for number in 0..RECORDS {
        shop.abandoned(number).await;
    }
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let mut processes = Vec::new();
    for _ in 0..3 {
        processes.push(shop.elsewhere(way(&database).await.meeting(Arc::clone(&barrier))));
    }
    until_due(&shop, DueKind::Lease, RECORDS as usize).await;
    // A process judges no lease over before a whole one has passed since its start.
    tokio::time::sleep(SHORT).await;
    let mut watches: Vec<_> = processes.iter().map(Shop::watch).collect();
    let [a, b, c] = &mut watches[..] else { unreachable!() };
    let (a, b, c) = tokio::join!(a.round(), b.round(), c.round());
    assert_eq!(a.unwrap() + b.unwrap() + c.unwrap(), RECORDS as usize);
    assert_eq!(processes.iter().map(|shop| shop.counted.of(Event::ZombieKey)).sum::<u64>(), 7);

    until_due(&shop, DueKind::Reconcile, RECORDS as usize).await;
    let mut reconcilers: Vec<_> = processes.iter().map(Shop::reconciler).collect();
    let [a, b, c] = &mut reconcilers[..] else { unreachable!() };
    let (a, b, c) = tokio::join!(a.turn(), b.turn(), c.turn());
    assert_eq!((a.unwrap(), b.unwrap(), c.unwrap()), (false, false, false));
    for reconciler in &mut reconcilers {
        reconciler.all_answered().await;
    }
    let by_operation = bank.by_operation();
    assert_eq!(by_operation.len(), RECORDS as usize);
    assert!(by_operation.values().all(|asked| *asked == 1), "{by_operation:?}");
}

#[tokio::test]
async fn what_an_open_transaction_holds_is_left_and_found_again() {
    let database = Database::without_records().await;
    let policy = Policy { lease: SHORT, settling: Settling::Webhook, ..Policy::default() };
    let shop = shop(&database, policy).await;
    let (held, free) = (shop.abandoned(1).await, shop.abandoned(2).await);
    until_due(&shop, DueKind::Lease, 2).await;
    let mut conn = database.connection().await;
    let mut tx = conn.begin().await.unwrap();
    let row = sqlx::query("SELECT 1 FROM semel_records WHERE key = $1 FOR UPDATE").bind(key(1).key);
    assert_eq!(row.fetch_all(&mut *tx).await.unwrap().len(), 1);
    let mut watch = shop.watch();
    assert_eq!(watch.round().await.unwrap(), 1, "nobody waits for it");
    assert_eq!((shop.state(held).await, shop.state(free).await), (State::InProgress, State::Unknown));
    tx.rollback().await.unwrap();
    assert_eq!(watch.round().await.unwrap(), 1);
    assert_eq!(shop.state(held).await, State::Unknown);
}

#[tokio::test]
async fn windows_end_by_the_servers_clock() {
    let database = Database::without_records().await;
    let policy = Policy { retention: SHORT, tombstone: SHORT, ..Policy::default() };
    let shop = shop(&database, policy).await;
    let id = shop.completed(1, "paid").await;
    let unknown = shop.doubted(2).await;
    let reaper = shop.reaper(ReaperOptions::default());
    until_due(&shop, DueKind::Purge, 1).await;
    assert_eq!(reaper.round().await.unwrap(), Reaped { reduced: 1, removed: 1 });
    assert!(shop.record(id).await.is_none());
    assert_eq!((shop.state(unknown).await, shop.counted.of(Event::TtlPruned)), (State::Unknown, 1));
}

/// By name alone, and by a foreign key that lets go.
#[tokio::test]
async fn domain_rows_that_refer_to_a_record_survive_it() {
    let database = Database::without_records().await;
    let policy = Policy { retention: SHORT, tombstone: Duration::ZERO, ..Policy::default() };
    let shop = shop(&database, policy).await;
    let mut conn = database.connection().await;
    let table = "CREATE TABLE payments (id text PRIMARY KEY, operation_id uuid NOT NULL,
        record uuid REFERENCES semel_records (operation_id) ON DELETE SET NULL)";
    sqlx::query(table).execute(&mut conn).await.unwrap();
    let id = shop.completed(1, "paid").await;
    let row = sqlx::query("INSERT INTO payments VALUES ('pay_1', $1::uuid, $1::uuid)").bind(id.to_string());
    row.execute(&mut conn).await.unwrap();
    until_due(&shop, DueKind::Purge, 1).await;
    assert_eq!(shop.reaper(ReaperOptions::default()).round().await.unwrap().removed, 1);
    assert!(shop.record(id).await.is_none());
    let row =
        sqlx::query("SELECT id, operation_id::text, record::text FROM payments").fetch_one(&mut conn).await;
    let row = row.unwrap();
    assert_eq!((row.get::<String, _>(0), row.get::<String, _>(1)), ("pay_1".into(), id.to_string()));
    assert_eq!(row.get::<Option<String>, _>(2), None);
}
