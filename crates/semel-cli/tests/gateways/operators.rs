//! What an operator sees of a configured gateway, and can do.

use crate::support::{Gateway, Service, TOKEN, key, payment, post, semel};
use serde_json::Value;
use std::process::Output;

const ROUTES: &str = r#"
[[route]]
operation = "create_payment"
match = "POST /payments"
key = "required"
[[route]]
operation = "refund_payment"
match = "POST /payments/{payment}/refunds"
"#;

pub(crate) fn operations(gateway: &Gateway, arguments: &[&str]) -> Output {
    let output = semel()
        .arg("operations")
        .args(arguments)
        .args(["--admin", &format!("http://{}", gateway.admin)])
        .env("SEMEL_ADMIN_TOKEN", TOKEN)
        .env("USER", "ada")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    output
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The number of a counter of an operation.
async fn counted(gateway: &Gateway, counter: &str, operation: &str) -> Option<u64> {
    let metrics = String::from_utf8(gateway.asked("/metrics").await.body).unwrap();
    let name = format!("api_idempotency_{counter}_total{{operation=\"{operation}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&name)).map(|number| number.parse().unwrap())
}

#[tokio::test]
async fn operations_are_counted_by_their_configured_names() {
    let service = Service::start();
    let gateway = Gateway::configured(&service, "memory:", "", ROUTES).await;
    for _retry in 0..3 {
        assert_eq!(gateway.send(&payment("payment-thrice")).await.status, 201);
    }
    for number in 1..=2 {
        let refund = post(&format!("/payments/{number}/refunds"), &format!("refund-number-{number}"));
        assert_eq!(gateway.send(&refund).await.status, 201);
    }
    for (counter, operation, number) in [
        ("reserve_created", "create_payment", 1),
        ("reserve_replay", "create_payment", 2),
        ("reserve_created", "refund_payment", 2),
        ("reserve_replay", "refund_payment", 0),
    ] {
        let count = counted(&gateway, counter, operation).await;
        assert_eq!(count.unwrap_or_default(), number, "{counter} {operation}");
    }
    let metrics = String::from_utf8(gateway.asked("/metrics").await.body).unwrap();
    assert!(!metrics.contains("/payments"), "paths would grow without bound: {metrics}");
}

#[tokio::test]
async fn a_person_settles_what_nobody_else_knows() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let gateway = Gateway::configured(&service, &store, "", ROUTES).await;
    let ask = payment("payment-in-doubt").field("x-hang-up: 1");
    let first = gateway.send(&ask).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    let id = first.header("semel-operation-id").unwrap();

    let listed = json(&operations(&gateway, &["list", "--state", "unknown", "--json"]));
    assert_eq!(listed["operations"].as_array().unwrap().len(), 1);
    assert_eq!(listed["operations"][0]["operation_id"], id);
    assert_eq!(listed["operations"][0]["operation"], "create_payment");
    let shown = operations(&gateway, &["show", id]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains("unknown") && shown.contains("create_payment"), "{shown}");

    let answer = r#"{"id":"b0dy-pay_1"}"#;
    let mut settling = vec!["resolve", id, "--outcome", "completed", "--reason", "the bank has it", "--yes"];
    settling.extend(["--status", "201", "--body", answer, "--content-type", "application/json"]);
    operations(&gateway, &settling);
    let retry = gateway.send(&ask).await;
    assert!(retry.status == 201 && retry.is_replay(), "{retry:?}");
    assert_eq!(retry.body, answer.as_bytes());
    assert_eq!(retry.header("content-type"), Some("application/json"));
    assert_eq!(retry.header("semel-operation-id"), Some(id));
    let shown = json(&operations(&gateway, &["show", id, "--json"]));
    let history = shown["history"].to_string();
    // The history names who was authenticated, not who the caller's environment says that they are.
    assert!(history.contains("the bank has it") && history.contains("operator:token:admin"), "{history}");
    assert_eq!(service.executed(), 1);
}

#[tokio::test]
async fn a_damaged_record_is_counted_and_hides_no_other() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.db");
    let gateway = Gateway::configured(&service, &format!("sqlite:{}", file.display()), "", ROUTES).await;
    for name in ["payment-in-doubt", "payment-that-is-damaged"] {
        assert_eq!(gateway.send(&payment(name).field("x-hang-up: 1")).await.status, 504);
    }
    let spoil = "UPDATE semel_records SET owner = x'00' WHERE key = ?1";
    let spoilt = rusqlite::Connection::open(&file).unwrap().execute(spoil, [key("payment-that-is-damaged")]);
    assert_eq!(spoilt.unwrap(), 1);

    let listed = gateway.asked("/v1/operations?state=unknown").await.json();
    assert_eq!(listed["operations"].as_array().unwrap().len(), 1);
    assert_eq!((&listed["operations"][0]["key"], &listed["damaged"]), (&"k3y-of-t…".into(), &1.into()));
    let stats = gateway.asked("/v1/stats").await.json();
    assert_eq!((&stats["unknown"], &stats["damaged"]), (&1.into(), &1.into()));
    let metrics = String::from_utf8(gateway.asked("/metrics").await.body).unwrap();
    assert!(metrics.lines().any(|line| line == "api_idempotency_damaged 1.0"), "{metrics}");
    let shown = operations(&gateway, &["list"]);
    assert!(String::from_utf8_lossy(&shown.stderr).contains("1 more cannot be read"), "{shown:?}");
}
