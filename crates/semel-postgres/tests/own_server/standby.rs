//! A standby is behind: it decides nothing, neither at the start nor when it becomes one.

use crate::fixture::{completion, draft, key, number, reserved};
use crate::instance::{Instance, refused};
use semel::{Decision, DueKind, DueQuery, Filter, Record, Store, StoreError};
use semel_postgres::{OpenError, PgOptions, PgStore};
use semel_testing::servers::{Cluster, Stop};
use sqlx::{Executor, PgPool};
use std::fmt::Debug;

#[tokio::test]
async fn a_streaming_standby_is_not_opened_whatever_is_accepted() {
    let primary = Cluster::start(&[]).unwrap();
    let store = PgStore::connect(&primary.url("postgres")).await.unwrap();
    reserved(&store, "on-the-primary").await;
    let standby = primary.standby().unwrap();
    let url = standby.url("postgres");
    // It does have the tables and the record: what is refused is not an empty server.
    let db = PgPool::connect(&url).await.unwrap();
    assert_eq!(number(&db, "SELECT count(*) FROM semel_records").await, 1);
    assert_eq!(number(&db, "SELECT count(*) FROM pg_stat_wal_receiver").await, 1);
    let brave = PgOptions::new().dangerously_accept_fsync_off().dangerously_accept_lossy_commits();
    for options in [PgOptions::new(), PgOptions::new().without_migrating(), brave] {
        let refused = options.connect(&url).await;
        assert!(matches!(refused, Err(OpenError::Standby)), "{refused:?}");
    }
    let refused = PgOptions::new().migrate(&url).await;
    assert!(matches!(refused, Err(OpenError::Standby)), "{refused:?}");

    standby.promote().unwrap();
    let promoted = Instance::open(&url).await;
    assert!(matches!(promoted.ask("after-the-failover").await, Ok(Decision::Execute(_))));
}

/// Not for any reason: for this one.
fn unavailable<T: Debug>(what: &str, why: &str, answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Unavailable(said)) if said.contains(why)), "{what}: {answer:?}");
}

async fn decides_nothing(store: &PgStore, there: &Record) {
    let why = "read-only transaction";
    unavailable("create", why, &store.create(vec![draft("new")]).await);
    unavailable("swap", why, &store.swap(vec![completion(there)]).await);
    unavailable("remove", why, &store.remove(vec![there.expected()]).await);
    unavailable("remember", why, &store.remember("recipe/new".into(), "text".into()).await);
}

async fn tells_nothing(store: &PgStore, there: &Record) {
    let why = "is a standby";
    for name in ["there", "not-there"] {
        unavailable("read", why, &store.read(vec![key(name)]).await);
    }
    unavailable("find", why, &store.find(vec![there.operation_id]).await);
    unavailable("recall", why, &store.recall("recipe/never-kept".into()).await);
    let due = DueQuery { kind: DueKind::Lease, after: None, limit: 10 };
    unavailable("due", why, &store.due(due).await);
    unavailable("list", why, &store.list(Filter::default(), None, 10).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_becomes_a_standby_decides_nothing_until_it_is_promoted() {
    let server = Cluster::start(&[]).unwrap();
    // One connection: of several, each would find out by itself that it was cut.
    let instance = Instance::open_with(PgOptions::new().max_connections(1), &server.url("postgres")).await;
    instance.carry_out("done").await;
    let record = reserved(&instance.store, "there").await;

    server.stop(Stop::Fast).unwrap();
    server.demote().unwrap();
    server.start_again().unwrap();
    // The first call finds the connection cut.
    let cut = instance.store.read(vec![key("there")]).await;
    assert!(matches!(cut, Err(StoreError::Unavailable(_))), "{cut:?}");
    tells_nothing(&instance.store, &record).await;
    decides_nothing(&instance.store, &record).await;
    // Neither what is new nor what is done is answered.
    for name in ["new", "done", "there"] {
        assert!(refused(&instance.ask(name).await), "{name}");
    }

    server.promote().unwrap();
    assert!(matches!(instance.ask("done").await, Ok(Decision::Replay(_))));
    assert!(matches!(instance.ask("new").await, Ok(Decision::Execute(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_becomes_read_only_decides_nothing() {
    let server = Cluster::start(&[]).unwrap();
    // One connection: each hears of a new setting at a moment of its own.
    let instance = Instance::open_with(PgOptions::new().max_connections(1), &server.url("postgres")).await;
    instance.carry_out("done").await;
    let record = reserved(&instance.store, "there").await;
    let db = PgPool::connect(&server.url("postgres")).await.unwrap();
    db.execute("ALTER SYSTEM SET default_transaction_read_only = on").await.unwrap();
    db.execute("SELECT pg_reload_conf()").await.unwrap();
    while instance.store.create(vec![draft(&semel::OperationId::random().to_string())]).await.is_ok() {}
    decides_nothing(&instance.store, &record).await;
    for name in ["new", "done", "there"] {
        assert!(refused(&instance.ask(name).await), "{name}");
    }
}
