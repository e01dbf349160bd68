//! What only PostgreSQL has: several transactions open at once, connections that are not durable, and poolers.

use crate::receiver::Receiver;
use crate::subject::{PATIENCE, Running, Subject, hasty, numbered, until};
use semel_events::outbox::Publisher;
use semel_events::outbox::postgres::{AppendError, PgOutbox, append, append_all};
use semel_postgres::{PgOptions, PgStore};
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection as _, Row as _, raw_sql};

async fn postgres() -> (Subject, PgPool) {
    let subject = Subject::postgres().await;
    let Subject::Postgres { db, .. } = &subject else { unreachable!("it is PostgreSQL") };
    let pool = db.clone();
    (subject, pool)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_commits_late_is_not_skipped() {
    let (outbox, pool) = postgres().await;
    let receiver = Receiver::new();
    let running = outbox.publish(receiver.sink());
    let mut late = pool.begin().await.unwrap();
    append_all(&mut late, &numbered("payment/late", 0..3)).await.unwrap();
    // Many rounds go by, over rows of higher numbers.
    for round in 0..20 {
        outbox.append(numbered("payment/others", round..round + 1)).await;
        receiver.until_confirmed(round as usize + 1).await;
    }
    assert!(receiver.first_times("payment/late").is_empty(), "not before the commit");
    late.commit().await.unwrap();
    receiver.until_confirmed(23).await;
    running.stop().await;
    assert_eq!(receiver.first_times("payment/late"), [0, 1, 2]);
    assert_eq!(receiver.first_times("payment/others"), (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_appends_to_the_same_aggregate_waits_for_its_turn() {
    let (outbox, pool) = postgres().await;
    let mut first = pool.begin().await.unwrap();
    append_all(&mut first, &numbered("payment/pay_1", 0..1)).await.unwrap();
    let second = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.append(numbered("payment/pay_1", 1..2)).await }
    });
    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
                      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    until(async || raw_sql(waiting).fetch_one(&pool).await.unwrap().get::<i64, _>(0) == 1).await;
    assert!(!second.is_finished());
    // The first one writes last, and was first all the same.
    append_all(&mut first, &numbered("payment/other", 0..1)).await.unwrap();
    first.commit().await.unwrap();
    second.await.unwrap();
    let rows = raw_sql(
        "SELECT convert_from(payload, 'UTF8') FROM semel_outbox WHERE aggregate = 'payment/pay_1' ORDER BY id",
    );
    let order: Vec<String> = rows.fetch_all(&pool).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(order, ["0", "1"]);
}

#[tokio::test]
async fn batches_that_lock_the_same_aggregates_do_not_deadlock() {
    let (outbox, _pool) = postgres().await;
    let tasks: Vec<_> = (0..8)
        .map(|task: u32| {
            let outbox = outbox.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    let mut aggregates: Vec<String> =
                        (0..10).map(|number| format!("order/{number}")).collect();
                    aggregates.rotate_left(task as usize);
                    let events = aggregates.iter().flat_map(|aggregate| numbered(aggregate, task..task + 1));
                    outbox.append(events.collect()).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(outbox.left().await, 800);
}

#[tokio::test]
async fn a_connection_that_is_not_fit_is_refused() {
    let (outbox, pool) = postgres().await;
    let event = numbered("payment/pay_1", 0..1).remove(0);
    let mut conn = pool.acquire().await.unwrap();
    assert!(matches!(append(&mut conn, &event).await, Err(AppendError::NoTransaction)));
    let mut tx = conn.begin().await.unwrap();
    raw_sql("SET LOCAL synchronous_commit = off").execute(&mut *tx).await.unwrap();
    assert!(matches!(append(&mut tx, &event).await, Err(AppendError::NotDurable)));
    tx.commit().await.unwrap();
    assert_eq!(outbox.left().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_it_works_behind_a_pooler_in_transaction_mode() {
    let (outbox, _pool) = postgres().await;
    let Subject::Postgres { database, .. } = &outbox else { unreachable!("it is PostgreSQL") };
    let options = PgOptions::new().without_prepared_statements();
    let store: PgStore = options.connect(&database.url_by_pgbouncer()).await.unwrap();
    // PgBouncer refuses a connection that asks for a setting which it does not know.
    let way = database.options_by_pgbouncer().extra_float_digits(None);
    let db = PgPoolOptions::new().acquire_timeout(PATIENCE).connect_with(way).await.unwrap();
    let behind = Subject::Postgres { store: store.clone(), db, database: database.clone() };
    let receiver = Receiver::new();
    let publishers: Vec<_> = (0..2)
        .map(|_| Running::start(Publisher::new(PgOutbox::of(&store), receiver.sink(), hasty())))
        .collect();
    let appending = (0..20).map(|aggregate| {
        let behind = behind.clone();
        tokio::spawn(async move {
            for number in 0..5 {
                behind.append(numbered(&format!("order/{aggregate}"), number..number + 1)).await;
            }
        })
    });
    for appended in appending.collect::<Vec<_>>() {
        appended.await.unwrap();
    }
    receiver.until_confirmed(100).await;
    behind.until_left(0).await;
    for publisher in publishers {
        publisher.stop().await;
    }
    for aggregate in 0..20 {
        assert_eq!(receiver.first_times(&format!("order/{aggregate}")), [0, 1, 2, 3, 4]);
    }
}
