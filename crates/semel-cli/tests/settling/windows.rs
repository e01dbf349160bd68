//! What is over is forgotten.

use crate::support::{Gateway, Service, config, until};

const KEY: &str = "key-of-a-payment-0001";
const DOUBTFUL: &str = "key-of-a-doubtful-one";

fn counter(name: &str) -> String {
    format!("api_idempotency_{name}_total{{operation=\"create_payment\"}}")
}

#[test]
fn a_key_is_refused_after_its_window_while_its_tombstone_stands() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "retention = \"1s\"\ntombstone = \"1h\"\n";
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, rest));
    assert_eq!(gateway.pay(DOUBTFUL, "hang-up").status, 504);
    assert_eq!(gateway.pay(KEY, "answer").status, 201);

    let tombstone = gateway.until(KEY, |operation| operation["state"] == "expired");
    assert_eq!(tombstone["response"], serde_json::json!({"status": 201, "headers": [], "body": "dropped"}));
    let back = gateway.pay(KEY, "answer");
    assert_eq!((back.status, back.code().as_str()), (422, "idempotency_key_expired"));
    assert_eq!(gateway.metric(&counter("expired_retry")), 1);
    assert_eq!(service.executions().len(), 2);

    let doubtful = gateway.operation(DOUBTFUL).unwrap();
    assert_eq!(doubtful["state"], "unknown", "doubt does not expire");
    let id = doubtful["operation_id"].as_str().unwrap();
    let resolve = ["resolve", id, "--outcome", "completed", "--reason", "the bank has it", "--status", "201"];
    assert_eq!(gateway.operations(&resolve).status.code(), Some(0));
    let settled = gateway.operation(DOUBTFUL).unwrap();
    let time = |name: &str| settled["times"][name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time("expires").duration_since(time("completed")).as_secs(), 1, "a whole window: {settled}");
}

#[test]
fn a_soft_reaper_keeps_the_record_and_the_key_is_new_work_all_the_same() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "retention = \"1s\"\ntombstone = \"0s\"\n[worker]\nforget = \"soft\"\n";
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, rest));
    assert_eq!(gateway.pay(KEY, "answer").status, 201);
    let kept = gateway.until(KEY, |operation| operation["state"] == "expired");
    assert_eq!(kept["response"]["body"], "dropped", "{kept}");
    let new = gateway.pay(KEY, "answer");
    assert_eq!((new.status, new.body.as_str()), (201, r#"{ "payment": 2 }"#), "{new:?}");
    assert_eq!(gateway.metric(&counter("ttl_pruned")), 0);
}

#[test]
fn a_key_is_new_work_after_its_tombstone() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "retention = \"1s\"\ntombstone = \"1s\"\n";
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, rest));
    assert_eq!(gateway.pay(DOUBTFUL, "hang-up").status, 504);
    assert_eq!(gateway.pay(KEY, "answer").body, r#"{ "payment": 2 }"#);

    until("the record is removed", || (gateway.metric(&counter("ttl_pruned")) == 1).then_some(()));
    assert_eq!(gateway.operation(KEY), None);
    let new = gateway.pay(KEY, "answer");
    assert_eq!((new.status, new.body.as_str()), (201, r#"{ "payment": 3 }"#), "{new:?}");
    let executions = service.executions();
    assert_ne!(executions[1], executions[2], "another operation");
    assert_eq!(gateway.operation(DOUBTFUL).unwrap()["state"], "unknown", "doubt is not removed");
}

#[test]
fn where_the_route_says_so_an_expired_key_is_new_work_at_once() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "retention = \"1s\"\ntombstone = \"1h\"\nexpired = \"new\"\n";
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, rest));
    assert_eq!(gateway.pay(KEY, "answer").status, 201);
    gateway.until(KEY, |operation| operation["expired"] == true);
    let new = gateway.pay(KEY, "answer");
    assert_eq!((new.status, new.body.as_str()), (201, r#"{ "payment": 2 }"#));
    assert_eq!(gateway.metric(&counter("expired_retry")), 1);
    assert_eq!(service.executions().len(), 2);
}
