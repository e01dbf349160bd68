//! From the quick start to a file, and back.

use crate::support::{Gateway, Service, payment};

#[tokio::test]
async fn keys_stay_valid_from_flags_to_a_catch_all_in_a_file_and_back() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let in_file =
        "[[route]]\nmatch = \"POST /**\"\n[[route]]\nmatch = \"PATCH /**\"\n[defaults]\nkey = \"optional\"\n";
    let (by_flags, by_file) = (payment("payment-first-by-flags"), payment("payment-first-by-file"));

    let gateway = Gateway::by_flags(&service, &store).await;
    let first = gateway.send(&by_flags).await;
    assert!(first.status == 201 && !first.is_replay(), "{first:?}");
    drop(gateway);

    let gateway = Gateway::configured(&service, &store, "", in_file).await;
    let replay = gateway.send(&by_flags).await;
    assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
    let second = gateway.send(&by_file).await;
    assert!(second.status == 201 && !second.is_replay(), "{second:?}");
    let listed = gateway.asked("/v1/operations?operation=POST+%2Fpayments").await.json();
    assert_eq!(listed["operations"].as_array().map(Vec::len), Some(2), "{listed}");
    let metrics = String::from_utf8(gateway.asked("/metrics").await.body).unwrap();
    assert!(
        metrics.contains("api_idempotency_reserve_created_total{operation=\"POST /**\"} 1\n"),
        "{metrics}"
    );
    drop(gateway);

    let gateway = Gateway::by_flags(&service, &store).await;
    for (ask, first) in [(&by_flags, &first), (&by_file, &second)] {
        let replay = gateway.send(ask).await;
        assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
    }
    assert_eq!(service.executions().len(), 2);
}
