//! An application's open transaction holds a key or a row: nobody waits for it, and nobody deadlocks.

use crate::fixture::{complete, completion, create, draft, key, number, open, read, reserved, swap};
use semel::transition::Claim;
use semel::{Created, Draft, Store, Swap, Swapped};
use semel_postgres::{PgOptions, PgStore, Reserved, act_in, reserve_in};
use semel_testing::database::Database;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgPool, raw_sql};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, Instant};

/// The longest that one call took, and how many there were: batches of fresh keys and of `held`, over and over for `time`.
async fn batches_beside(store: &PgStore, round: &str, held: &str, time: Duration) -> (Duration, u32) {
    let (began, mut longest, mut calls) = (Instant::now(), Duration::ZERO, 0);
    while began.elapsed() < time {
        let mut drafts: Vec<Draft> = (0..31).map(|n| draft(&format!("{round}-{calls}-{n}"))).collect();
        drafts.push(draft(held));
        let call = Instant::now();
        let answer = store.create(drafts.clone()).await.unwrap();
        let (held, others) = answer.items.split_last().unwrap();
        assert!(others.iter().all(|created| *created == Created::Inserted), "{others:?}");
        assert_eq!(*held, Created::Locked);
        let swaps: Vec<Swap> =
            drafts[..31].iter().map(|draft| completion(&draft.clone().at(answer.now))).collect();
        let answer = store.swap(swaps).await.unwrap();
        assert!(answer.items.iter().all(|swapped| *swapped == Swapped::Done));
        longest = longest.max(call.elapsed());
        calls += 1;
    }
    (longest, calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_held_for_five_seconds_holds_nobody_else_up() {
    let database = Database::new().await;
    let (store, db) = (open(&database).await, database.pool().await);
    let mut tx = db.begin().await.unwrap();
    let Reserved::New(record) = reserve_in(&mut tx, draft("held")).await.unwrap() else {
        panic!("it is new")
    };
    let (longest, calls) = batches_beside(&store, "held", "held", Duration::from_secs(5)).await;
    assert!(longest < Duration::from_secs(1), "a batch took {longest:?}");
    assert!(calls > 50, "only {calls} pairs of batches in five seconds");
    act_in(&mut tx, &Claim::of(&record), &complete()).await.unwrap();
    tx.commit().await.unwrap();
    assert!(matches!(create(&store, draft("held")).await, Created::Exists(_)), "and then it is told");
}

#[tokio::test]
async fn a_record_that_is_being_completed_is_locked_for_everybody_else() {
    let database = Database::new().await;
    let (store, db) = (open(&database).await, database.pool().await);
    let record = reserved(&store, "completing").await;
    let mut tx = db.begin().await.unwrap();
    act_in(&mut tx, &Claim::of(&record), &complete()).await.unwrap();

    assert_eq!(create(&store, draft("completing")).await, Created::Locked);
    assert_eq!(swap(&store, completion(&record)).await, Swapped::Locked);
    let removed = store.remove(vec![record.expected()]).await.unwrap();
    assert_eq!(removed.items, [Swapped::Locked]);
    assert_eq!(
        read(&store, "completing").await,
        Some(record.clone()),
        "whoever reads sees what was committed"
    );
    let mut other = db.begin().await.unwrap();
    assert_eq!(reserve_in(&mut other, draft("completing")).await.unwrap(), Reserved::Locked);
    drop(other);

    tx.commit().await.unwrap();
    assert!(matches!(create(&store, draft("completing")).await, Created::Exists(_)));
    assert!(matches!(swap(&store, completion(&record)).await, Swapped::Changed(_)));
}

#[tokio::test]
async fn two_transactions_that_reserve_one_key_do_not_wait_for_each_other() {
    let database = Database::new().await;
    let (store, db) = (open(&database).await, database.pool().await);
    let mut first = db.begin().await.unwrap();
    assert!(matches!(reserve_in(&mut first, draft("once")).await.unwrap(), Reserved::New(_)));
    let mut second = db.begin().await.unwrap();
    assert_eq!(reserve_in(&mut second, draft("once")).await.unwrap(), Reserved::Locked);
    first.rollback().await.unwrap();
    assert!(matches!(reserve_in(&mut second, draft("once")).await.unwrap(), Reserved::New(_)));
    second.commit().await.unwrap();
    assert!(read(&store, "once").await.is_some());
}

#[tokio::test]
async fn a_row_that_is_only_locked_can_be_read_and_is_skipped_by_writes() {
    let database = Database::new().await;
    let (store, db) = (open(&database).await, database.pool().await);
    let record = reserved(&store, "locked").await;
    let beside = reserved(&store, "beside").await;
    let mut tx = db.begin().await.unwrap();
    let locking = sqlx::query("SELECT 1 FROM semel_records WHERE key = $1 FOR UPDATE").bind("locked");
    locking.execute(&mut *tx).await.unwrap();
    assert_eq!(create(&store, draft("locked")).await, Created::Exists(Box::new(record.clone())));
    let answer = store.swap(vec![completion(&record), completion(&beside)]).await.unwrap();
    assert_eq!(answer.items, [Swapped::Locked, Swapped::Done]);
    tx.rollback().await.unwrap();
    assert_eq!(swap(&store, completion(&record)).await, Swapped::Done);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_in_opposite_orders_never_deadlock() {
    const ROUNDS: usize = 60;
    let database = Database::new().await;
    let (stores, db) = ([open(&database).await, open(&database).await], database.pool().await);
    let hammer = |store: PgStore, backwards: bool| async move {
        for round in 0..ROUNDS {
            // Both at the same keys: creates that meet, completions and removals of what either one made.
            let mut names: Vec<String> = (0..40).map(|n| format!("{}-{n}", round / 2)).collect();
            if backwards {
                names.reverse();
            }
            store.create(names.iter().map(|name| draft(name)).collect()).await.unwrap();
            let read = store.read(names.iter().map(|name| key(name)).collect()).await.unwrap();
            let records: Vec<_> = read.items.into_iter().flatten().collect();
            let live = records.iter().filter(|record| record.version == 1);
            store.swap(live.map(completion).collect()).await.unwrap();
            store.remove(records.iter().step_by(3).map(semel::Record::expected).collect()).await.unwrap();
        }
    };
    let began = Instant::now();
    let tasks: Vec<_> = (0..4).map(|n| tokio::spawn(hammer(stores[n % 2].clone(), n >= 2))).collect();
    for task in tasks {
        task.await.unwrap();
    }
    // Past the server's own patience of a second, a deadlock would have been broken by an error, which fails a call.
    assert!(began.elapsed() < Duration::from_secs(60));
    raw_sql("SELECT pg_stat_clear_snapshot()").execute(&db).await.unwrap();
    assert_eq!(
        number(&db, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await,
        0
    );
}

/// How many transactions wait for their next statement.
const OPEN: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";

/// Gives up on a transaction between its beginning on the server and its answer, as a time-out does.
async fn give_up_on_a_transaction(pool: &PgPool, looking: &PgPool) {
    for _ in 0..1_000 {
        // Where the answer came first, that transaction is on its way to its end.
        while number(looking, OPEN).await > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut begin = pin!(pool.begin());
        while poll_once(begin.as_mut()).await.is_pending() {
            if number(looking, OPEN).await > 0 {
                return;
            }
        }
    }
    panic!("the answer always came first");
}

async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

#[tokio::test]
async fn what_is_written_after_somebody_gave_up_on_a_transaction_is_committed() {
    let database = Database::new().await;
    let looking = database.pool().await;
    let applications = PgPoolOptions::new().max_connections(1).connect(&database.url()).await.unwrap();
    let over_it = PgOptions::new().open(applications.clone()).await.unwrap();
    let own = PgOptions::new().max_connections(1).connect(&database.url()).await.unwrap();
    let records = "SELECT count(*) FROM semel_records";
    for (count, store, pool) in [(1, &over_it, &applications), (2, &own, own.pool())] {
        give_up_on_a_transaction(pool, &looking).await;
        assert_eq!(create(store, draft(&format!("number-{count}"))).await, Created::Inserted);
        assert_eq!(number(&looking, records).await, count, "acknowledged, and not committed");
    }
}

#[tokio::test]
async fn a_transaction_that_nobody_waits_for_any_more_is_not_left_open() {
    let database = Database::new().await;
    let (pool, looking) = (database.pool().await, database.pool().await);
    for _ in 0..20 {
        let mut begin = pin!(semel_postgres::begin(&pool));
        assert!(poll_once(begin.as_mut()).await.is_pending());
    }
    let mut tries = 0;
    // What was begun ends by itself; what has not been begun yet is not counted, so it is looked at more than once.
    while tries < 20 {
        tries = if number(&looking, OPEN).await == 0 { tries + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
