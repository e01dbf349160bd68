//! Purely local operations: reserved and finished in one commit, and executed once.

use crate::fixture::{draft, number};
use crate::shop::{Shop, command, completed, pay, retryable};
use semel::{BeginError, Body, Decision, Outcome, Stale, State, Store, StoreError};
use semel_postgres::{Once, OnceError};
use semel_testing::database::Cut;
use sqlx::Row;
use sqlx::postgres::PgConnection;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

type Ended = Result<Once<String>, OnceError<sqlx::Error>>;

/// Pays under this key, with an id of the payment that is its own: a second execution would be a second row.
async fn once(shop: &Shop, name: &str) -> Ended {
    let command = command("10.00");
    let work = async |tx: &mut PgConnection, operation: semel::OperationId| {
        let paid = pay(tx, &format!("{operation}/{:?}", std::time::Instant::now())).await?;
        Ok((paid, completed()))
    };
    shop.store.once(&shop.engine, shop.incoming(name, &command), work).await
}

fn executed(ended: Ended) -> String {
    match ended {
        Ok(Once::Executed(paid)) => paid,
        other => panic!("it was to execute, and got {other:?}"),
    }
}

fn replayed(ended: Ended) {
    let Ok(Once::Decided(Decision::Replay(record))) = ended else {
        panic!("it was to be replayed, and got {ended:?}")
    };
    let response = record.response.unwrap();
    assert_eq!((response.status, response.body), (201, Body::Stored("paid".into())));
}

#[tokio::test]
async fn an_operation_is_executed_once_and_replayed_from_then_on() {
    let shop = Shop::open(Stale::Rerun).await;
    let paid = executed(once(&shop, "once").await);
    let record = shop.record("once").await.unwrap();
    assert!(paid.starts_with(&record.operation_id.to_string()));
    assert_eq!((record.state, record.version, record.attempt), (State::Completed, 2, 1));
    let same = "SELECT count(*) FROM payments p, semel_records r WHERE p.xmin = r.xmin";
    assert_eq!(number(&shop.db, same).await, 1, "by one transaction");
    replayed(once(&shop, "once").await);
    assert_eq!(shop.payments().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_duplicates_one_executes_and_the_others_do_not_wait_for_it() {
    let shop = Arc::new(Shop::open(Stale::Rerun).await);
    let (begun, going_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let first = tokio::spawn({
        let (shop, begun, going_on) = (shop.clone(), begun.clone(), going_on.clone());
        async move {
            let command = command("10.00");
            let work = async |tx: &mut PgConnection, _| {
                let paid = pay(tx, "the first").await?;
                begun.add_permits(1);
                going_on.acquire().await.unwrap().forget();
                Ok((paid, completed()))
            };
            shop.store.once(&shop.engine, shop.incoming("fifty", &command), work).await
        }
    });
    begun.acquire().await.unwrap().forget();
    let all = |shop: &Arc<Shop>| {
        let mut requests = JoinSet::new();
        for _ in 0..49 {
            let shop = shop.clone();
            requests.spawn(async move { once(&shop, "fifty").await });
        }
        requests.join_all()
    };
    for ended in all(&shop).await {
        assert!(matches!(ended, Ok(Once::Decided(Decision::InProgress { .. }))), "{ended:?}");
    }
    going_on.add_permits(1);
    assert_eq!(executed(first.await.unwrap()), "the first");
    for ended in all(&shop).await {
        replayed(ended);
    }
    assert_eq!(shop.payments().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_fifty_that_come_at_once_one_executes() {
    let shop = Arc::new(Shop::open(Stale::Rerun).await);
    for round in ["one", "two", "three"] {
        let mut requests = JoinSet::new();
        for _ in 0..50 {
            let shop = shop.clone();
            requests.spawn(async move { once(&shop, round).await });
        }
        let mut executions = 0;
        for ended in requests.join_all().await {
            match ended.unwrap() {
                Once::Executed(_) => executions += 1,
                Once::Decided(Decision::Replay(_) | Decision::InProgress { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(executions, 1, "{round}");
        replayed(once(&shop, round).await);
    }
    assert_eq!(shop.payments().await, 3);
}

#[tokio::test]
async fn a_request_costs_one_commit() {
    const REQUESTS: usize = 60;
    let (shop, proxy) = Shop::behind_a_proxy(Stale::Rerun).await;
    // The first one has the statements prepared and the recipe kept.
    executed(once(&shop, "the-first").await);
    let before = proxy.transactions();
    for number in 0..REQUESTS {
        executed(once(&shop, &number.to_string()).await);
    }
    let transactions = proxy.transactions() - before;
    // A mark of the clock comes once a minute, and statements are prepared once for each connection.
    assert!((REQUESTS..REQUESTS + 30).contains(&transactions), "{transactions} transactions");
}

#[tokio::test]
async fn work_that_gives_up_is_rolled_back_and_leaves_no_record() {
    let shop = Shop::open(Stale::Rerun).await;
    let command = command("10.00");
    let work = async |tx: &mut PgConnection, _| {
        pay(tx, "pay_1").await.map_err(|_| "the row")?;
        Err::<((), Outcome), _>("no funds")
    };
    let given_up = shop.store.once(&shop.engine, shop.incoming("given-up", &command), work).await;
    assert!(matches!(given_up, Err(OnceError::Application("no funds"))), "{given_up:?}");
    assert_eq!((shop.payments().await, shop.record("given-up").await), (0, None));
    executed(once(&shop, "given-up").await);
    assert_eq!(shop.payments().await, 1);
}

#[tokio::test]
async fn a_connection_that_is_killed_before_the_commit_leaves_nothing_and_a_retry_executes() {
    let shop = Shop::open(Stale::Rerun).await;
    let command = command("10.00");
    let work = async |tx: &mut PgConnection, _| {
        let paid = pay(tx, "pay_1").await?;
        let pid: i32 = sqlx::query("SELECT pg_backend_pid()").fetch_one(&mut *tx).await?.get(0);
        sqlx::query("SELECT pg_terminate_backend($1, 5000)").bind(pid).execute(&shop.db).await?;
        Ok::<_, sqlx::Error>((paid, completed()))
    };
    let killed = shop.store.once(&shop.engine, shop.incoming("killed", &command), work).await;
    assert!(
        matches!(killed, Err(OnceError::Begin(BeginError::Store(StoreError::Unavailable(_))))),
        "{killed:?}"
    );
    assert_eq!((shop.payments().await, shop.record("killed").await), (0, None));
    executed(once(&shop, "killed").await);
    assert_eq!(shop.payments().await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_read_back() {
    let (shop, proxy) = Shop::behind_a_proxy(Stale::Rerun).await;
    executed(once(&shop, "warming-up").await);
    proxy.cut_next(Cut::AnswerOfCommit);
    executed(once(&shop, "lost").await);
    assert!(proxy.has_cut());
    replayed(once(&shop, "lost").await);
    assert_eq!(shop.payments().await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_is_said_to_be_lost_and_a_retry_executes() {
    let (shop, proxy) = Shop::behind_a_proxy(Stale::Rerun).await;
    executed(once(&shop, "warming-up").await);
    proxy.cut_next(Cut::Commit);
    let lost = once(&shop, "lost").await;
    assert!(proxy.has_cut());
    assert!(matches!(lost, Err(OnceError::Begin(BeginError::Store(StoreError::Lost(_))))), "{lost:?}");
    // The server may not have noticed yet that nobody will commit.
    let retry = loop {
        match once(&shop, "lost").await {
            Ok(Once::Decided(Decision::InProgress { .. })) => tokio::task::yield_now().await,
            ended => break ended,
        }
    };
    executed(retry);
    assert_eq!(shop.payments().await, 2);
}

#[tokio::test]
async fn another_request_under_the_same_key_is_refused_whatever_became_of_the_first() {
    let shop = Shop::open(Stale::Rerun).await;
    let id = executed(once(&shop, "reused").await);
    let other = command("99.00");
    let work = async |_: &mut PgConnection, _| -> Result<((), Outcome), sqlx::Error> {
        panic!("it is not to be run")
    };
    let refused = shop.store.once(&shop.engine, shop.incoming("reused", &other), work).await;
    let Ok(Once::Decided(Decision::KeyReused { operation_id, .. })) = refused else { panic!("{refused:?}") };
    assert!(id.starts_with(&operation_id.to_string()));
    assert_eq!(shop.payments().await, 1);
}

#[tokio::test]
async fn a_failure_is_an_outcome_too_and_what_it_wrote_is_kept() {
    let shop = Shop::open(Stale::Rerun).await;
    let command = command("10.00");
    let work = async |tx: &mut PgConnection, _| {
        pay(tx, "declined").await?;
        let Outcome::Completed { response, resource } = completed() else { panic!("it is") };
        Ok::<_, sqlx::Error>(((), Outcome::Failed { response, resource }))
    };
    let failed = shop.store.once(&shop.engine, shop.incoming("declined", &command), work).await;
    assert!(matches!(failed, Ok(Once::Executed(()))), "{failed:?}");
    assert_eq!(shop.record("declined").await.unwrap().state, State::FailedReplayable);
    replayed(once(&shop, "declined").await);
    assert_eq!(shop.payments().await, 1);
}

#[tokio::test]
async fn what_somebody_left_behind_is_executed_by_one_new_owner() {
    let shop = Shop::open(Stale::Rerun).await;
    // One that failed in a way that may be tried again, and one whose owner is gone.
    shop.execute("retryable").await.finish(retryable()).await.unwrap();
    std::mem::forget(shop.execute("abandoned").await);
    assert!(matches!(once(&shop, "abandoned").await, Ok(Once::Decided(Decision::InProgress { .. }))));
    shop.leases_are_over().await;
    for (done, name) in (1..).zip(["retryable", "abandoned"]) {
        executed(once(&shop, name).await);
        let record = shop.record(name).await.unwrap();
        assert_eq!((record.state, record.attempt), (State::Completed, 2));
        replayed(once(&shop, name).await);
        assert_eq!(shop.payments().await, done);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_attempts_commit_is_read_back_too_and_where_it_never_arrived_a_third_executes() {
    let (shop, proxy) = Shop::behind_a_proxy(Stale::Rerun).await;
    for (cut, is_there) in [(Cut::AnswerOfCommit, true), (Cut::Commit, false)] {
        let name = format!("{cut:?}");
        shop.execute(&name).await.finish(retryable()).await.unwrap();
        proxy.cut_next(cut);
        let ended = once(&shop, &name).await;
        assert!(proxy.has_cut());
        if is_there {
            executed(ended);
            replayed(once(&shop, &name).await);
        } else {
            assert!(
                matches!(ended, Err(OnceError::Begin(BeginError::Store(StoreError::Lost(_))))),
                "{ended:?}"
            );
            shop.engine.drained().await;
            assert_eq!(
                (shop.record(&name).await.unwrap().state, shop.payments().await),
                (State::FailedRetryable, 1)
            );
            executed(once(&shop, &name).await);
        }
    }
    assert_eq!(shop.payments().await, 2);
}

#[tokio::test]
async fn an_owner_that_was_taken_over_commits_nothing() {
    let shop = Shop::open(Stale::Rerun).await;
    shop.execute("overtaken").await.finish(retryable()).await.unwrap();
    let command = command("10.00");
    let work = async |tx: &mut PgConnection, _| {
        let paid = pay(tx, "pay_late").await?;
        shop.leases_are_over().await;
        executed(once(&shop, "overtaken").await);
        Ok::<_, sqlx::Error>((paid, completed()))
    };
    let refused = shop.store.once(&shop.engine, shop.incoming("overtaken", &command), work).await;
    assert!(matches!(refused, Err(OnceError::Refused(_))), "{refused:?}");
    assert_eq!(shop.payments().await, 1);
    assert_eq!(shop.record("overtaken").await.unwrap().attempt, 3);
}

#[tokio::test]
async fn a_key_that_an_open_transaction_holds_is_in_progress() {
    let shop = Shop::open(Stale::Rerun).await;
    let mut open = shop.db.begin().await.unwrap();
    semel_postgres::reserve_in(&mut open, draft("held")).await.unwrap();
    assert!(matches!(once(&shop, "held").await, Ok(Once::Decided(Decision::InProgress { .. }))));
    open.rollback().await.unwrap();
    executed(once(&shop, "held").await);
    assert_eq!(shop.store.list(semel::Filter::default(), None, 10).await.unwrap().records.len(), 1);
}

#[tokio::test]
async fn once_goes_by_way_of_pgbouncer() {
    let shop = Shop::behind_pgbouncer(Stale::Rerun).await;
    for name in ["first", "second", "third"] {
        executed(once(&shop, name).await);
        replayed(once(&shop, name).await);
    }
    assert_eq!(shop.payments().await, 3);
}
