//! Replication is declared, verified at the start, and watched.

use crate::fixture::{completion, draft, reserved};
use crate::replicated::{db, followed, group, set, until};
use semel::transition::{Act, Change, Claim, Match, Windows, act, arrive};
use semel::{Created, Policy, Store, StoreError, Swapped};
use semel_postgres::{OpenError, PgOptions, PgStore, Replication};
use semel_testing::servers::{Cluster, Stop};
use sqlx::Executor;

fn synchronous() -> PgOptions {
    PgOptions::new().replication(Replication::Synchronous)
}

#[tokio::test]
async fn a_server_with_a_standby_is_refused_until_it_is_declared_what_a_failover_loses() {
    let primary = Cluster::start(&[]).unwrap();
    let standby = primary.standby().unwrap();
    let url = primary.url("postgres");
    let refused = PgStore::connect(&url).await.unwrap_err();
    assert!(matches!(refused, OpenError::ReplicationUndeclared { .. }), "{refused:?}");
    for word in ["\"synchronous\"", "\"storage\"", "\"none\"", "dangerously_accept_asynchronous_replication"]
    {
        assert!(refused.to_string().contains(word), "{refused}");
    }
    let refused = synchronous().connect(&url).await;
    assert!(matches!(refused, Err(OpenError::NotSynchronous { .. })), "{refused:?}");
    for options in [
        PgOptions::new().replication(Replication::None),
        PgOptions::new().replication(Replication::Storage),
        PgOptions::new().dangerously_accept_asynchronous_replication(),
    ] {
        reserved(&options.connect(&url).await.unwrap(), &semel::OperationId::random().to_string()).await;
    }
    // One that has gone may come back: its slot is still there.
    let db = db(&primary).await;
    db.execute("SELECT pg_create_physical_replication_slot('standby')").await.unwrap();
    standby.stop(Stop::Fast).unwrap();
    let refused = PgStore::connect(&url).await;
    assert!(matches!(refused, Err(OpenError::ReplicationUndeclared { .. })), "{refused:?}");
}

#[tokio::test]
async fn synchronous_replication_is_verified_by_a_role_that_can_see_it() {
    let (primary, _standbys) = group(&["s1"]).await;
    let url = primary.url("postgres");
    let refused = PgStore::connect(&url).await;
    assert!(matches!(refused, Err(OpenError::ReplicationUndeclared { .. })), "{refused:?}");
    reserved(&synchronous().connect(&url).await.unwrap(), "verified").await;

    let db = db(&primary).await;
    db.execute(
        "CREATE ROLE shop LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO shop",
    )
    .await
    .unwrap();
    let shop = url.replace("postgres@", "shop@");
    let refused = synchronous().connect(&shop).await.unwrap_err();
    assert!(refused.to_string().contains("GRANT pg_read_all_stats TO \"shop\""), "{refused}");
    db.execute("GRANT pg_read_all_stats TO shop").await.unwrap();
    reserved(&synchronous().connect(&shop).await.unwrap(), "granted").await;

    set(&primary, "synchronous_standby_names", "*").await;
    let refused = synchronous().connect(&url).await.unwrap_err();
    assert!(matches!(&refused, OpenError::NotSynchronous { why } if why.contains('*')), "{refused}");
}

#[tokio::test]
async fn commits_that_wait_for_no_standby_are_refused_in_the_setting_and_in_every_session() {
    for weak in ["local", "remote_write"] {
        let server = Cluster::start(&[&format!("synchronous_commit = {weak}")]).unwrap();
        let refused = PgStore::connect(&server.url("postgres")).await;
        assert!(
            matches!(&refused, Err(OpenError::WeakCommits { setting }) if setting == weak),
            "{refused:?}"
        );
    }
    let server = Cluster::start(&[]).unwrap();
    let store = PgOptions::new().max_connections(1).connect(&server.url("postgres")).await.unwrap();
    set(&server, "synchronous_commit", "local").await;
    // Each session hears of it at a moment of its own.
    until(async || match store.create(vec![draft(&semel::OperationId::random().to_string())]).await {
        Ok(_) => false,
        Err(error) => {
            assert!(
                matches!(&error, StoreError::Unavailable(why) if why.contains("synchronous_commit")),
                "{error}"
            );
            true
        }
    })
    .await;
}

#[tokio::test]
async fn while_commits_wait_for_nobody_nothing_is_begun_and_outcomes_are_stored() {
    let (primary, _standbys) = group(&["s1"]).await;
    let store = synchronous().connect(&primary.url("postgres")).await.unwrap();
    let risk = store.risk();
    assert_eq!(risk.reason(), None);
    let (running, retryable) = (reserved(&store, "running").await, reserved(&store, "retryable").await);
    let windows = Windows::from(&Policy::default());
    let failing = Act::Retryable { error: "nothing happened".into(), windows };
    let Ok(Change::Put { next, history }) = act(&retryable, &Claim::of(&retryable), &failing) else {
        panic!("an owner can fail")
    };
    let swap = semel::Swap { expected: retryable.expected(), next, history };
    let answer = store.swap(vec![swap.clone()]).await.unwrap();
    assert_eq!(answer.items, [Swapped::Done]);
    let retryable = (*swap.next).at(answer.moment());

    set(&primary, "synchronous_standby_names", "").await;
    until(async || risk.reason().is_some()).await;
    let refused = store.create(vec![draft("new")]).await;
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("a failover could lose")),
        "{refused:?}"
    );
    // Another attempt would execute too.
    let arrival = semel::transition::Arrival {
        matches: Match::Same,
        owner: semel::Owner::random(),
        policy: &Policy::default(),
    };
    let semel::transition::Arrived::Take(Change::Put { next, history }) =
        arrive(&retryable, &arrival, answer.moment())
    else {
        panic!("a failed attempt can be followed by another")
    };
    let retry = semel::Swap { expected: retryable.expected(), next, history };
    let refused = store.swap(vec![retry.clone()]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let both = store.swap(vec![completion(&running), retry.clone()]).await.unwrap();
    assert_eq!(both.items, [Swapped::Done, Swapped::Locked]);

    set(&primary, "synchronous_standby_names", "s1").await;
    followed(&primary, 1).await;
    until(async || risk.reason().is_none()).await;
    assert_eq!(store.create(vec![draft("new")]).await.unwrap().items, [Created::Inserted]);
    assert_eq!(store.swap(vec![retry]).await.unwrap().items, [Swapped::Done]);
}
