//! Effect and mark in one transaction of SQLite.

use crate::broker::until;
use crate::ledger::id;
use rusqlite::{Connection, TransactionBehavior};
use semel::clock::ClockRequest;
use semel::{Engine, Store as _};
use semel_events::consumer::Failure;
use semel_events::inbox::{Forgotten, Handled, InboxError, Retention, SqliteInbox};
use semel_sqlite::{ActError, Clock, SqliteOptions, SqliteStore, Transaction};
use semel_worker::{Worker, WorkerOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

struct Ledger {
    directory: TempDir,
    store: SqliteStore,
    inbox: SqliteInbox,
}

fn enter(payment: &'static str) -> impl Fn(&Transaction<'_>) -> rusqlite::Result<usize> + Copy {
    move |tx| tx.execute("INSERT INTO ledger (payment) VALUES (?1)", [payment])
}

impl Ledger {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(directory.path().join("ledger.db")).await.unwrap();
        store.transaction(|tx| tx.execute_batch("CREATE TABLE ledger (payment TEXT)")).await.unwrap();
        let inbox = SqliteInbox::new(store.clone(), "ledger").unwrap();
        Self { directory, store, inbox }
    }

    async fn count(&self, table: &'static str) -> u32 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.store.transaction(move |tx| tx.query_row(&sql, [], |row| row.get(0))).await.unwrap()
    }

    fn connection(&self) -> Connection {
        let conn = Connection::open(self.directory.path().join("ledger.db")).unwrap();
        conn.pragma_update(None, "synchronous", "FULL").unwrap();
        conn
    }
}

#[tokio::test]
async fn a_message_has_its_effect_once() {
    let ledger = Ledger::new().await;
    assert_eq!(ledger.inbox.handle(&id("m1"), enter("pay_1")).await.unwrap(), Handled::Now(1));
    assert_eq!(ledger.inbox.handle(&id("m1"), enter("pay_1")).await.unwrap(), Handled::Before);
    let mail = SqliteInbox::new(ledger.store.clone(), "mail").unwrap();
    assert_eq!(mail.handle(&id("m1"), enter("pay_1")).await.unwrap(), Handled::Now(1));
    assert_eq!(ledger.count("ledger").await, 2);
}

#[tokio::test]
async fn an_effect_that_fails_or_panics_leaves_neither_rows_nor_a_mark() {
    let ledger = Ledger::new().await;
    let failing = |tx: &Transaction<'_>| {
        enter("pay_1")(tx)?;
        Err::<(), _>(Failure::Failed("no".into()))
    };
    let failed = ledger.inbox.handle(&id("m1"), failing).await;
    assert!(matches!(failed, Err(InboxError::Application(Failure::Failed(_)))), "{failed:?}");
    let panicking = |tx: &Transaction<'_>| -> Result<(), Failure> {
        enter("pay_1")(tx)?;
        panic!("a mistake of the handler's")
    };
    let failed = ledger.inbox.handle(&id("m1"), panicking).await.unwrap_err();
    assert!(matches!(Failure::from(failed), Failure::Failed(_)));
    assert_eq!((ledger.count("ledger").await, ledger.count("semel_inbox").await), (0, 0));
    assert_eq!(ledger.inbox.handle(&id("m1"), enter("pay_1")).await.unwrap(), Handled::Now(1));
}

#[tokio::test]
async fn what_the_file_lacks_is_no_failure_of_the_message_and_a_wrong_value_is() {
    let ledger = Ledger::new().await;
    for (sql, of_the_message) in [
        ("INSERT INTO ledgre (payment) VALUES ('pay_1')", false),
        ("INSERT INTO semel_inbox (consumer, message_id, marked_at) VALUES (NULL, 'm1', 0)", true),
    ] {
        let failed = ledger.inbox.handle(&id("m1"), move |tx| tx.execute(sql, [])).await;
        let failure = Failure::from(failed.unwrap_err());
        assert_eq!(matches!(failure, Failure::Failed(_)), of_the_message, "{sql}: {failure}");
        assert_eq!(matches!(failure, Failure::NotNow(_)), !of_the_message, "{sql}: {failure}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_of_deliveries_in_two_processes_has_one_effect() {
    let ledger = Ledger::new().await;
    // Another handle on the file is another process, as far as SQLite is concerned.
    let other = SqliteStore::open(ledger.directory.path().join("ledger.db")).await.unwrap();
    let inboxes = [ledger.inbox.clone(), SqliteInbox::new(other, "ledger").unwrap()];
    let crowd: Vec<_> = (0..20)
        .map(|number| {
            let inbox = inboxes[number % 2].clone();
            tokio::spawn(async move { inbox.handle(&id("m1"), enter("pay_1")).await.unwrap() })
        })
        .collect();
    let mut first = 0;
    for one in crowd {
        first += usize::from(one.await.unwrap() == Handled::Now(1));
    }
    assert_eq!((first, ledger.count("ledger").await), (1, 1));
}

#[tokio::test]
async fn a_mark_on_a_connection_of_ones_own_commits_with_its_transaction() {
    let ledger = Ledger::new().await;
    let mut conn = ledger.connection();
    let unfit = ledger.inbox.mark_in(&conn, &id("m1")).unwrap_err();
    assert!(matches!(unfit, ActError::NoWriteTransaction), "{unfit:?}");
    for (commits, first) in [(false, true), (true, true), (true, false)] {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        assert_eq!(ledger.inbox.mark_in(&tx, &id("m1")).unwrap(), first);
        if first {
            tx.execute("INSERT INTO ledger (payment) VALUES ('pay_1')", []).unwrap();
        }
        if commits { tx.commit().unwrap() } else { tx.rollback().unwrap() }
    }
    assert_eq!(ledger.count("ledger").await, 1);
}

async fn half_failing(inbox: &SqliteInbox, message: &str, receipt_works: bool) -> Result<[bool; 2], Failure> {
    let Some(steps) = inbox.steps::<Failure>(&id(message)).await? else { return Ok([false; 2]) };
    let entered = steps.effect("ledger_payment_pay_789", enter("entry")).await?;
    let receipt = move |tx: &Transaction<'_>| {
        enter("receipt")(tx)?;
        if receipt_works { Ok(()) } else { Err(Failure::Failed("the mail is refused".into())) }
    };
    let sent = steps.effect("receipt_payment_pay_789", receipt).await?;
    steps.finish::<Failure>().await?;
    Ok([entered == Handled::Now(1), sent == Handled::Now(())])
}

#[tokio::test]
async fn a_handler_that_failed_half_way_goes_on_to_the_end_and_repeats_nothing() {
    let ledger = Ledger::new().await;
    for _ in 0..3 {
        let failed = half_failing(&ledger.inbox, "m1", false).await;
        assert!(matches!(failed, Err(Failure::Failed(_))), "{failed:?}");
        assert_eq!((ledger.count("ledger").await, ledger.count("semel_inbox").await), (1, 0));
    }
    assert_eq!(half_failing(&ledger.inbox, "m1", true).await, Ok([false, true]));
    assert_eq!((ledger.count("ledger").await, ledger.count("semel_inbox").await), (2, 1));
    assert_eq!(half_failing(&ledger.inbox, "m1", true).await, Ok([false, false]), "handled before");
    assert_eq!(half_failing(&ledger.inbox, "m2", true).await, Ok([false, false]), "another message of it");
    assert_eq!((ledger.count("ledger").await, ledger.count("semel_inbox").await), (2, 2));
}

#[tokio::test]
async fn marks_are_forgotten_by_the_files_clock_in_small_batches() {
    const HOUR: i64 = 3_600_000;
    let ledger = Ledger::new().await;
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    let inbox = ledger.inbox.clone().keeping(Retention { messages: hours(2), effects: hours(4) });
    for (table, consumer, age, count) in [
        ("semel_inbox", "ledger", 3 * HOUR, 600),
        ("semel_inbox", "ledger", HOUR, 5),
        ("semel_inbox", "mail", 3 * HOUR, 7),
        ("semel_inbox_effects", "ledger", 5 * HOUR, 3),
        ("semel_inbox_effects", "ledger", 3 * HOUR, 2),
    ] {
        let filling = move |tx: &Transaction<'_>| {
            let sql = format!("INSERT INTO {table} VALUES (?1, ?2, ?3)");
            for number in 0..count {
                let marked_at = tx.now().as_millis() - age;
                tx.execute(&sql, (consumer, format!("{age}-{number}"), marked_at))?;
            }
            Ok::<_, rusqlite::Error>(())
        };
        ledger.store.transaction(filling).await.unwrap();
    }
    assert_eq!(inbox.forget().await.unwrap(), Forgotten { messages: 600, effects: 3 });
    assert_eq!(inbox.forget().await.unwrap(), Forgotten::default());
    assert_eq!((ledger.count("semel_inbox").await, ledger.count("semel_inbox_effects").await), (12, 2));
}

#[tokio::test]
async fn a_worker_forgets_marks_beside_its_other_work() {
    let ledger = Ledger::new().await;
    let _now = ledger.inbox.handle(&id("m1"), enter("pay_1")).await.unwrap();
    let inbox = ledger.inbox.clone().keeping(Retention { messages: Duration::ZERO, ..Retention::default() });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(Engine::new(ledger.store.clone()), WorkerOptions::default());
    let worker = worker.chore("the ledger's inbox", Duration::from_secs(3600), move || {
        let inbox = inbox.clone();
        async move { inbox.forget().await.map(drop) }
    });
    let running = tokio::spawn(worker.run(async move { drop(stopped.await) }));
    let gone = async || (ledger.count("semel_inbox").await == 0).then_some(());
    until("that the mark is forgotten", gone).await;
    drop(stop);
    running.await.unwrap();
}

const DAY: u64 = 24 * 60 * 60 * 1_000;

/// A machine's clock that a test moves, in milliseconds: the time of day, and the time since it was started.
#[derive(Clone, Default)]
struct Hands(Arc<[AtomicU64; 2]>);

impl Hands {
    fn at(wall: u64) -> Self {
        let hands = Self::default();
        hands.0[0].store(wall, SeqCst);
        hands
    }

    fn pass(&self, by: u64) {
        for hand in &*self.0 {
            hand.fetch_add(by, SeqCst);
        }
    }
}

impl Clock for Hands {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0[0].load(SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0[1].load(SeqCst))
    }

    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

const NOON: u64 = 1_800_000_000_000;

/// A ledger whose store was used at noon, was stopped for 20 days, and has been started by a clock that says so.
async fn stopped_for_longer_than_marks_are_kept(hands: &Hands) -> Ledger {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let before = SqliteOptions::new().clock(Hands::at(NOON)).open(&path).await.unwrap();
    before.transaction(|tx| tx.execute_batch("CREATE TABLE ledger (payment TEXT)")).await.unwrap();
    before.close().await;
    let store = SqliteOptions::new().clock(hands.clone()).open(&path).await.unwrap();
    let inbox = SqliteInbox::new(store.clone(), "ledger").unwrap();
    Ledger { directory, store, inbox }
}

#[tokio::test]
async fn a_mark_that_is_made_during_a_clock_hold_is_as_young_afterwards_as_it_is() {
    let hands = Hands::at(NOON + 20 * DAY);
    let ledger = stopped_for_longer_than_marks_are_kept(&hands).await;
    assert!(ledger.store.clock(ClockRequest::Look).await.unwrap().is_held());
    assert_eq!(ledger.inbox.handle(&id("m1"), enter("pay_1")).await.unwrap(), Handled::Now(1));
    // The clock was right all the time.
    ledger.store.clock(ClockRequest::Accept).await.unwrap();
    hands.pass(60_000);
    assert_eq!(ledger.inbox.forget().await.unwrap(), Forgotten::default());
    assert_eq!(ledger.inbox.handle(&id("m1"), enter("pay_1")).await.unwrap(), Handled::Before);
    assert_eq!(ledger.count("ledger").await, 1);
    hands.pass(14 * DAY);
    assert_eq!(ledger.inbox.forget().await.unwrap().messages, 1, "its time is over, by the store's clock");
}

#[tokio::test]
async fn nothing_is_forgotten_during_a_clock_hold() {
    let hands = Hands::at(NOON + 20 * DAY);
    let ledger = stopped_for_longer_than_marks_are_kept(&hands).await;
    let now = i64::try_from(NOON).unwrap();
    let old = move |tx: &Transaction<'_>| {
        let sql = "INSERT INTO semel_inbox (consumer, message_id, marked_at) VALUES ('ledger', 'old', ?1)";
        tx.execute(sql, [now - i64::try_from(15 * DAY).unwrap()])
    };
    ledger.store.transaction(old).await.unwrap();
    assert_eq!(ledger.inbox.forget().await.unwrap(), Forgotten::default());
    ledger.store.clock(ClockRequest::Accept).await.unwrap();
    assert_eq!(ledger.inbox.forget().await.unwrap().messages, 1);
}
