//! Alive, and ready.

use crate::support::{Call, Fault, Office, Opening, get};
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_store_that_hangs_makes_it_unready_in_time_and_leaves_it_alive() {
    let office =
        Office::with(Opening { store_timeout: Duration::from_millis(200), ..Opening::default() }).await;
    assert_eq!(get("/readyz").send(&office.admin).await.json()["ready"], true);
    office.store.always(Call::Read, Fault::Hang);
    let asked = Instant::now();
    let answer = get("/readyz").send(&office.admin).await;
    assert!(asked.elapsed() < Duration::from_secs(8), "it does not hang along");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["why"], "the store did not answer within 200ms");
    assert_eq!(get("/healthz").send(&office.admin).await.status, 200);
    office.store.heal();
    assert_eq!(get("/readyz").send(&office.admin).await.status, 200);
}

#[tokio::test]
async fn a_store_that_fails_makes_it_unready_and_what_failed_is_for_the_log() {
    let office = Office::open().await;
    office.store.next(Call::Read, [Fault::Unavailable]);
    let answer = get("/readyz").send(&office.admin).await;
    assert_eq!(answer.status, 503);
    let why = answer.json()["why"].as_str().unwrap().to_owned();
    assert!(why.contains("not available") && !why.contains("as told"), "{why}");
}

#[tokio::test]
async fn a_gateway_that_stops_is_not_ready_any_more() {
    let office = Office::open().await;
    office.readiness.stopping();
    let answer = get("/readyz").send(&office.admin).await;
    assert_eq!((answer.status, answer.json()["why"].as_str()), (503, Some("the gateway is stopping")));
    assert_eq!(get("/healthz").send(&office.admin).await.status, 200);
}

#[tokio::test]
async fn the_listing_says_so_when_the_store_is_away() {
    let office = Office::open().await;
    office.store.next(Call::Read, [Fault::Unavailable]);
    let answer = office.get("/v1/operations").await;
    assert_eq!((answer.status, crate::support::problem(&answer)), (503, "admin_store_unavailable".into()));
    assert_eq!(answer.header("retry-after"), Some("1"));
}
