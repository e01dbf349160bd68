//! What a request through the gateway costs: syncs of the disk on SQLite, statements on PostgreSQL.

use crate::support::{Ask, Database, Gateway, PAYMENTS, Service, Way, payment};
use semel_testing::shim;
use std::path::Path;

/// What is done beside the requests would be counted with them.
const ALONE: &str = "[worker]\nin_gateway = false\n";

/// What requests cost, one by one.
async fn is_charged(
    gateway: &Gateway,
    service: &Service,
    what: &str,
    cost: impl Fn() -> usize,
    each: [usize; 5],
) {
    // The first brings the recipe along, and begins a log or prepares statements; its retry and its like likewise.
    let first = payment("very-first");
    gateway.send(&first).await;
    gateway.send(&first).await;
    gateway.send(&payment("refused-first").field("x-status: 400")).await;

    let one = payment("alone");
    let differs: Ask = one.clone().body(r#"{"note":"b0dy-of-another"}"#);
    let spent = async |ask: &Ask, status: u16| {
        let before = cost();
        let answer = gateway.send(ask).await;
        assert_eq!(answer.status, status, "{answer:?}");
        cost() - before
    };
    let spent_each = [
        spent(&one, 201).await,
        spent(&one, 201).await,
        spent(&differs, 422).await,
        spent(&payment("refused").field("x-status: 400"), 400).await,
        spent(&Ask::new("POST /payments").body("{}"), 400).await,
    ];
    assert_eq!(spent_each, each, "{what}: new, replayed, mismatched, released, without a key");
    assert_eq!(service.executed(), 4);
}

fn length(file: &Path) -> usize {
    std::fs::metadata(file).map_or(0, |file| usize::try_from(file.len()).unwrap())
}

#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "the shim is written for Linux and glibc")]
async fn a_request_syncs_the_disk_twice_and_a_retry_never() {
    let (service, directory) = (Service::start(), tempfile::tempdir().unwrap());
    let shim = shim::compile("count_syncs", directory.path());
    let (store, syncs) = (directory.path().join("semel.db"), directory.path().join("syncs"));
    let store = format!("sqlite:{}", store.display());
    let preload = [("LD_PRELOAD", shim.as_path()), ("SHIM_SYNCS", syncs.as_path())];
    let sections = format!("{ALONE}{PAYMENTS}");
    let gateway = Gateway::configured_under(&service, &store, "", &sections, preload).await;
    assert!(length(&syncs) > 0, "the shim counts");
    is_charged(&gateway, &service, "syncs", || length(&syncs), [2, 0, 0, 2, 0]).await;
}

#[tokio::test]
async fn a_request_takes_two_statements_and_so_does_a_retry() {
    let (service, database) = (Service::start(), Database::new().await);
    let way = Way::to(&database).await;
    let gateway = Gateway::configured(&service, &way.url, "", &format!("{ALONE}{PAYMENTS}")).await;
    is_charged(&gateway, &service, "statements", || way.statements(), [2, 2, 2, 2, 0]).await;
}
