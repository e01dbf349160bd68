//! The connection is cut while a write is under way: what was written is found out, never guessed.

use crate::fixture::{completion, draft, key, open, read, reserved};
use semel::fingerprint::{Command, Recipe};
use semel::{Created, Decision, Engine, Incoming, Policy, State, Store, StoreError};
use semel_postgres::{PgOptions, PgStore};
use semel_testing::database::Database;
use semel_testing::database::{Cut, Proxy};
use std::sync::Arc;

/// A store behind the proxy, over one connection on which every statement was prepared before; and one that goes straight.
async fn behind_a_proxy(database: &Database, options: PgOptions) -> (Proxy, PgStore, PgStore) {
    let direct = open(database).await;
    let (proxy, server) = Proxy::before(database.options()).await;
    let url = sqlx::ConnectOptions::to_url_lossy(&server).to_string();
    let store = options.max_connections(1).connect(&url).await.unwrap();
    let record = reserved(&store, "warming-up").await;
    store.swap(vec![completion(&record)]).await.unwrap();
    read(&store, "warming-up").await;
    (proxy, store, direct)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_whose_answer_is_lost_is_there_under_its_owners_token() {
    let database = Database::new().await;
    let (proxy, store, direct) = behind_a_proxy(&database, PgOptions::new()).await;
    let ours = draft("answer-lost");
    proxy.cut_next(Cut::AnswerOfStatement);
    let lost = store.create(vec![ours.clone()]).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert!(proxy.has_cut());
    let there = read(&direct, "answer-lost").await.unwrap();
    assert_eq!((there.owner, there.operation_id), (ours.owner, ours.operation_id));
    // The same store reads it back over a new connection.
    assert_eq!(read(&store, "answer-lost").await, Some(there));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_that_never_arrived_is_lost_too_and_is_not_there() {
    let database = Database::new().await;
    let (proxy, store, direct) = behind_a_proxy(&database, PgOptions::new()).await;
    proxy.cut_next(Cut::Statement);
    let lost = store.create(vec![draft("call-lost")]).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    assert_eq!(read(&direct, "call-lost").await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_completion_whose_answer_is_lost_is_done_once() {
    let database = Database::new().await;
    let (proxy, store, direct) = behind_a_proxy(&database, PgOptions::new()).await;
    let record = reserved(&store, "completing").await;
    proxy.cut_next(Cut::AnswerOfStatement);
    let lost = store.swap(vec![completion(&record)]).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    let there = read(&direct, "completing").await.unwrap();
    assert_eq!((there.state, there.version, there.owner), (State::Completed, 2, record.owner));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_lost_and_a_statement_before_it_is_not() {
    let database = Database::new().await;
    let options = PgOptions::new().without_prepared_statements();
    let (proxy, store, direct) = behind_a_proxy(&database, options).await;
    // Before the COMMIT was sent nothing can have been committed, and that is certain.
    proxy.cut_next(Cut::AnswerOfStatement);
    let refused = store.create(vec![draft("before-commit")]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(read(&direct, "before-commit").await, None);

    let ours = draft("at-commit");
    proxy.cut_next(Cut::AnswerOfCommit);
    let lost = store.create(vec![ours.clone()]).await;
    assert!(matches!(lost, Err(StoreError::Lost(_))), "{lost:?}");
    let there = read(&direct, "at-commit").await.unwrap();
    assert_eq!(there.owner, ours.owner);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engine_finds_its_reservation_by_the_owners_token_and_executes() {
    let database = Database::new().await;
    let (proxy, store, direct) = behind_a_proxy(&database, PgOptions::new()).await;
    let engine = Engine::new(store);
    let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
    let command = Command::new(recipe, None, &"10.00 EUR").unwrap();
    let incoming = |name| Incoming { key: key(name), subject: &command, policy: Arc::new(Policy::default()) };
    // The first request also keeps the recipe; the second one has its answer lost.
    let Decision::Execute(first) = engine.begin(incoming("first")).await.unwrap() else {
        panic!("it is new")
    };
    proxy.cut_next(Cut::AnswerOfStatement);
    let decision = engine.begin(incoming("read-back")).await.unwrap();
    assert!(proxy.has_cut());
    assert!(matches!(decision, Decision::Execute(_)), "{decision:?}");
    assert_eq!(read(&direct, "read-back").await.unwrap().attempt, 1);
    drop((first, decision));
}

#[tokio::test]
async fn a_server_that_is_not_there_has_written_nothing() {
    let database = Database::new().await;
    let store = open(&database).await;
    let closed = store.clone();
    store.close().await;
    let refused = closed.create(vec![draft("nobody-home")]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_that_is_ended_loses_answers_and_the_store_goes_on() {
    let database = Database::new().await;
    let (store, db) = (open(&database).await, database.pool().await);
    let ending = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                    WHERE datname = current_database() AND application_name = 'semel'";
    for round in 0..5 {
        reserved(&store, &format!("before-{round}")).await;
        crate::fixture::number(&db, ending).await;
        let mut tries = 0;
        let created = loop {
            match store.create(vec![draft(&format!("after-{round}"))]).await {
                Ok(answer) => break answer.items,
                Err(error) => assert!(!matches!(error, StoreError::Damaged(_)), "{error}"),
            }
            tries += 1;
            assert!(tries < 50, "the store never came back");
        };
        assert!(matches!(created[..], [Created::Inserted | Created::Exists(_)]), "{created:?}");
    }
}
