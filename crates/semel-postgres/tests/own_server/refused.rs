//! Servers that do not keep what they commit.

use crate::fixture::{draft, reserved};
use semel::Created;
use semel::Store;
use semel_postgres::{OpenError, PgOptions, PgStore};
use semel_testing::servers::Cluster;

#[tokio::test]
async fn a_server_without_fsync_is_refused_unless_asked_for() {
    let server = Cluster::start(&["fsync = off"]).unwrap();
    let url = server.url("postgres");
    let refused = PgStore::connect(&url).await;
    assert!(matches!(refused, Err(OpenError::FsyncOff)), "{refused:?}");
    let other_danger = PgOptions::new().dangerously_accept_lossy_commits().connect(&url).await;
    assert!(matches!(other_danger, Err(OpenError::FsyncOff)), "{other_danger:?}");
    let accepted = PgOptions::new().dangerously_accept_fsync_off().connect(&url).await.unwrap();
    reserved(&accepted, "accepted").await;
}

#[tokio::test]
async fn a_server_that_acknowledges_too_early_is_refused_unless_asked_for() {
    let server = Cluster::start(&["synchronous_commit = off"]).unwrap();
    let url = server.url("postgres");
    let refused = PgStore::connect(&url).await;
    assert!(matches!(refused, Err(OpenError::LossyCommits)), "{refused:?}");
    let other_danger = PgOptions::new().dangerously_accept_fsync_off().connect(&url).await;
    assert!(matches!(other_danger, Err(OpenError::LossyCommits)), "{other_danger:?}");
    let accepted = PgOptions::new().dangerously_accept_lossy_commits().connect(&url).await.unwrap();
    let answer = accepted.create(vec![draft("accepted")]).await.unwrap();
    assert_eq!(answer.items, [Created::Inserted]);
}
