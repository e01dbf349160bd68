//! Several hosts: the primary is found, found again after a failover, and never taken for one that was left behind.

use crate::fixture::{draft, key, reserved};
use crate::instance::Instance;
use crate::replicated::{follow, followed, group, until, url};
use semel::{Decision, Store, StoreError};
use semel_postgres::{OpenError, PgOptions, PgStore, Replication};
use semel_testing::servers::{Cluster, Stop};

fn brave() -> PgOptions {
    PgOptions::new().dangerously_accept_asynchronous_replication()
}

#[tokio::test]
async fn the_one_that_takes_writes_is_taken_wherever_it_stands_in_the_url() {
    let primary = Cluster::start(&[]).unwrap();
    let standby = primary.standby().unwrap();
    for order in [[&primary, &standby], [&standby, &primary]] {
        let store = brave().connect(&url(&order)).await.unwrap();
        reserved(&store, &semel::OperationId::random().to_string()).await;
    }
    let undeclared = PgStore::connect(&url(&[&standby, &primary])).await;
    assert!(matches!(undeclared, Err(OpenError::ReplicationUndeclared { .. })), "{undeclared:?}");
    primary.stop(Stop::Fast).unwrap();
    let nobody = brave().connect(&url(&[&standby, &primary])).await.unwrap_err();
    let said = nobody.to_string();
    assert!(said.contains(&format!("127.0.0.1:{} is a standby", standby.port())), "{said}");
    assert!(said.contains("connection refused"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failover_the_new_primary_serves_all_that_was_acknowledged() {
    let (primary, standbys) = group(&["s1", "s2"]).await;
    let [next, other] = &standbys[..] else { panic!("two standbys") };
    let options = PgOptions::new().replication(Replication::Synchronous);
    let instance = Instance::open_with(options, &url(&[&primary, next, other])).await;
    instance.carry_out("done").await;

    primary.stop(Stop::Immediate).unwrap();
    // One of two has it; the one that is ahead is promoted, as whoever decides on failovers does.
    follow(other, next).await;
    next.promote().unwrap();
    followed(next, 1).await;
    until(async || matches!(instance.ask("done").await, Ok(Decision::Replay(_)))).await;
    until(async || instance.store.risk().reason().is_none()).await;
    instance.carry_out("after-the-failover").await;
    assert!(matches!(instance.ask("after-the-failover").await, Ok(Decision::Replay(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_take_writes_neither_is_written_to_and_the_one_left_behind_never_again() {
    let primary = Cluster::start(&[]).unwrap();
    let standby = primary.standby().unwrap();
    let all = url(&[&primary, &standby]);
    let store = brave().connect(&all).await.unwrap();
    reserved(&store, "before").await;

    standby.promote().unwrap();
    let split = brave().connect(&all).await;
    assert!(matches!(split, Err(OpenError::TwoPrimaries { .. })), "{split:?}");
    until(async || {
        let refused = store.create(vec![draft(&semel::OperationId::random().to_string())]).await;
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("split brain"))
    })
    .await;

    primary.stop(Stop::Fast).unwrap();
    until(async || store.create(vec![draft(&semel::OperationId::random().to_string())]).await.is_ok()).await;
    standby.stop(Stop::Fast).unwrap();
    primary.start_again().unwrap();
    until(async || {
        let refused = store.read(vec![key("before")]).await;
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("left behind by a failover"))
    })
    .await;
}

#[tokio::test]
async fn hosts_of_different_systems_are_refused() {
    let (one, other) = (Cluster::start(&[]).unwrap(), Cluster::start(&[]).unwrap());
    let mixed = brave().connect(&url(&[&one, &other])).await;
    assert!(matches!(mixed, Err(OpenError::AnotherSystem { .. })), "{mixed:?}");
}
