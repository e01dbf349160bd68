//! Client keys with `[encryption]`: nowhere in the clear, looked up all the same, and never in two formats.

use crate::encryption::{keys, rekey};
use crate::operators::{json, operations};
use crate::support::{Database, Gateway, PAYMENTS, Service, configuration, key, payment, semel};
use std::path::Path;
use tempfile::TempDir;

fn file() -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    (directory, store)
}

/// Whether any file of the directory has these bytes in it.
fn holds(directory: &Path, text: &str) -> bool {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let bytes: Vec<Vec<u8>> = files.map(|file| std::fs::read(file).unwrap()).collect();
    assert!(!bytes.is_empty());
    bytes.iter().any(|bytes| bytes.windows(text.len()).any(|window| window == text.as_bytes()))
}

/// What a gateway says that does not start.
fn refused(service: &Service, store: &str, sections: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.toml");
    std::fs::write(&file, configuration(service, store, "", sections)).unwrap();
    let output = semel().args(["gateway", "--config"]).arg(file).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn ends(mut gateway: Gateway) {
    gateway.is_told_to_end();
    assert_eq!(gateway.ended().await.code(), Some(0));
}

#[tokio::test]
async fn neither_keys_nor_bodies_can_be_read_in_the_files_and_operators_find_keys_all_the_same() {
    let (service, (directory, store)) = (Service::start(), file());
    let sections = keys(&["one"], "");
    let gateway = Gateway::configured(&service, &store, "", &sections).await;
    let first = gateway.send(&payment("first-payment")).await;
    assert_eq!(first.status, 201);
    let doubtful = gateway.send(&payment("payment-in-doubt").field("x-hang-up: 1")).await;
    assert_eq!(doubtful.status, 504);
    // The log is not copied yet, or in part: all three files count.
    for (text, there) in [("sealed 1:", true), ("k3y-", false), ("b0dy-", false), ("payment-in-doubt", false)]
    {
        assert_eq!(holds(directory.path(), text), there, "{text}");
    }
    let replay = gateway.send(&payment("first-payment")).await;
    assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");

    let listed = json(&operations(&gateway, &["list", "--key", &key("payment-in-doubt"), "--json"]));
    assert_eq!(listed["operations"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(
        (&listed["operations"][0]["key"], &listed["operations"][0]["state"]),
        (&"k3y-of-t…".into(), &"unknown".into())
    );
    let id = doubtful.header("semel-operation-id").unwrap();
    let shown =
        |more: &[&str]| json(&operations(&gateway, &[&["show", id, "--json"], more].concat()))["key"].clone();
    assert_eq!((shown(&[]), shown(&["--full-key"])), ("k3y-of-t…".into(), key("payment-in-doubt").into()));
    let table = operations(&gateway, &["list"]).stdout;
    assert!(!String::from_utf8_lossy(&table).contains("k3y-of-the"), "the beginning alone");
    let wrong = gateway.asked(&format!("/v1/operations/{id}?full_key=perhaps")).await;
    assert_eq!(wrong.status, 400);

    // Without the key nothing could be looked up: a reload is refused, and so is a start.
    gateway.is_given(&configuration(&service, &store, "", PAYMENTS));
    gateway.is_told_to_reload();
    gateway.has_logged("cannot read from the store how client keys are kept").await;
    assert!(gateway.send(&payment("first-payment")).await.is_replay());
    ends(gateway).await;
    assert!(refused(&service, &store, PAYMENTS).contains("sealed by the key"));
    assert!(refused(&service, &store, &keys(&["two"], "")).contains("sealed by the key"));

    // Another key seals, and the first one can go.
    let (status, counts) = rekey(&store, &keys(&["two", "one"], ""), &[]).await;
    assert_eq!((status, &counts["client_keys"]), (Some(1), &"sealed".into()), "one is in doubt: {counts}");
    let gateway = Gateway::configured(&service, &store, "", &keys(&["two"], "")).await;
    let replay = gateway.send(&payment("first-payment")).await;
    assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
    assert_eq!(gateway.send(&payment("payment-in-doubt")).await.status, 409);
    assert_eq!(service.executed(), 2);
    ends(gateway).await;
}

/// A store that was used in plain text is converted, and back; the retry is a replay throughout.
async fn is_converted(store: &str, holds_key: impl AsyncFn() -> bool) {
    let service = Service::start();
    let paid = payment("payment-before");
    let plain = Gateway::configured(&service, store, "", PAYMENTS).await;
    assert_eq!(plain.send(&paid).await.status, 201);
    ends(plain).await;
    assert!(holds_key().await);

    // Switched on, the keys stay as they were: an instance without encryption may still run.
    let sections = keys(&["one"], "");
    let gateway = Gateway::configured(&service, store, "", &sections).await;
    gateway.has_logged("client keys are stored in plain text").await;
    assert!(gateway.send(&paid).await.is_replay());
    let stale = Gateway::configured(&service, store, "", PAYMENTS).await;
    assert!(stale.send(&paid).await.is_replay());
    ends(gateway).await;

    // Somebody forgot one that does not seal. What it reserves from now on is refused.
    let (status, counts) = rekey(store, &sections, &["--keys"]).await;
    assert_eq!((status, &counts["client_keys"]), (Some(0), &"sealed".into()), "{counts}");
    let lost = stale.send(&paid).await;
    assert!([500, 503].contains(&lost.status), "{lost:?}");
    let lost = stale.send(&payment("payment-after")).await;
    assert!([500, 503].contains(&lost.status), "{lost:?}");
    drop(stale);

    let gateway = Gateway::configured(&service, store, "", &sections).await;
    assert!(gateway.send(&paid).await.is_replay());
    assert_eq!(gateway.send(&payment("payment-after")).await.status, 201);
    ends(gateway).await;
    assert!(!holds_key().await, "the keys of before are gone");
    assert!(refused(&service, store, PAYMENTS).contains("sealed by the key"));

    let open_only = keys(&["one"], "seal_with = \"none\"");
    let (status, counts) = rekey(store, &open_only, &["--keys", "--decrypt"]).await;
    assert_eq!((status, &counts["client_keys"]), (Some(0), &"plain".into()), "{counts}");
    let gateway = Gateway::configured(&service, store, "", PAYMENTS).await;
    assert!(gateway.send(&paid).await.is_replay());
    assert!(gateway.send(&payment("payment-after")).await.is_replay());
    assert_eq!(service.executed(), 2);
    ends(gateway).await;
}

#[tokio::test]
async fn a_used_file_is_converted_and_nothing_is_executed_twice() {
    let (directory, store) = file();
    is_converted(&store, async || holds(directory.path(), "k3y-of-the-payment")).await;
}

#[tokio::test]
async fn a_used_database_is_converted_and_nothing_is_executed_twice() {
    let database = Database::new().await;
    is_converted(&database.url(), async || database.dump().await.contains("k3y-of-the-payment")).await;
}

#[tokio::test]
async fn a_new_database_holds_neither_keys_nor_bodies() {
    let (service, database) = (Service::start(), Database::new().await);
    let gateways = [
        Gateway::configured(&service, &database.url(), "", &keys(&["one"], "")).await,
        Gateway::configured(&service, &database.url(), "", &keys(&["one"], "")).await,
    ];
    assert_eq!(gateways[0].send(&payment("first-payment")).await.status, 201);
    assert!(gateways[1].send(&payment("first-payment")).await.is_replay());
    let dump = database.dump().await;
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(dump.contains("sealed 1:"));
    for secret in ["k3y-", "b0dy-"] {
        assert!(!dump.contains(secret) && !dump.contains(&hex(secret)), "{secret}");
    }
    assert_eq!(service.executed(), 1);
}
