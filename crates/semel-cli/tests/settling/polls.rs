//! The service is asked.

use crate::support::{Gateway, Service, config, until};
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const KEY: &str = "key-of-a-payment-0001";

fn poll(service: &Service, settings: &str) -> String {
    format!(
        r#"
[route.reconcile]
poll = "http://{}/operations/{{operation_id}}"
every = "100ms"
{settings}
"#,
        service.address
    )
}

#[test]
fn what_the_service_did_is_found_out_without_a_retry() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file = config(directory.path(), "semel.toml", service.address, &poll(&service, ""));
    let gateway = Gateway::start(&file);
    let first = gateway.pay(KEY, "hang-up");
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"), "{first:?}");

    let settled = gateway.until(KEY, |operation| operation["state"] == "completed");
    assert_eq!(settled["response"]["status"], 201);
    let id = settled["operation_id"].as_str().unwrap();
    assert_eq!(service.questions().last(), Some(&json!([format!("/operations/{id}"), id, 1])));

    let retry = gateway.pay(KEY, "answer");
    assert_eq!((retry.status, retry.body.as_str()), (201, r#"{ "payment": 1 }"#));
    assert_eq!(retry.header("content-type"), Some("application/json"));
    assert_eq!(retry.header("location"), Some("/payments/1"));
    assert_eq!(retry.header("idempotent-replayed"), Some("true"));
    assert_eq!(service.executions(), [json!([id, 1])]);
    let count =
        |name: &str| gateway.metric(&format!("api_idempotency_{name}_total{{operation=\"create_payment\"}}"));
    assert_eq!((count("reconcile_scheduled"), count("reconcile_resolved")), (1, 1));
    assert_eq!(count("reserve_created"), 1);
}

#[test]
fn no_trace_of_it_is_proof_only_once_the_lease_is_over() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!("lease = \"3s\"\ntimeout = \"2s\"\n{}", poll(&service, "absence_is_proof = true"));
    let file = config(directory.path(), "semel.toml", service.address, &rest);
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.pay(KEY, "vanish").status, 504);

    let settled = gateway.until(KEY, |operation| operation["state"] == "failed_retryable");
    let times = |name: &str| settled["times"][name].as_str().unwrap().to_owned();
    let last = settled["history"].as_array().unwrap().last().unwrap();
    assert!(last["at"].as_str().unwrap() >= times("lease_until").as_str(), "{settled}");
    assert!(!service.questions().is_empty());
    assert!(service.executions().is_empty());

    let retry = gateway.pay(KEY, "answer");
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, None), "{retry:?}");
    let id = settled["operation_id"].as_str().unwrap();
    assert_eq!(service.executions(), [json!([id, 2])], "as the second attempt of the same operation");
}

#[test]
fn what_nobody_can_tell_waits_for_a_person() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!("lease = \"300ms\"\ntimeout = \"200ms\"\n{}", poll(&service, "attempts = 1"));
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest));
    assert_eq!(gateway.pay(KEY, "vanish").status, 504);

    let given_up = gateway.until(KEY, |operation| operation["dead_letter"] == true);
    assert_eq!((&given_up["state"], &given_up["reconcile_attempts"]), (&json!("unknown"), &json!(1)));
    assert_eq!(service.questions().len(), 1);
    let id = given_up["operation_id"].as_str().unwrap();
    let listed = gateway.ask("/v1/operations?dead_letter=true").json();
    assert_eq!(listed["operations"][0]["operation_id"], id);
    let refused = gateway.pay(KEY, "answer");
    assert_eq!((refused.status, refused.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert!(service.executions().is_empty(), "404 is no proof here, lease or not");

    let resolve = ["resolve", id, "--outcome", "completed", "--reason", "the bank has it", "--status", "201"];
    let resolved = gateway.operations(&[&resolve[..], &["--body", "paid"]].concat());
    assert_eq!(resolved.status.code(), Some(0), "{resolved:?}");
    let retry = gateway.pay(KEY, "answer");
    assert_eq!((retry.status, retry.body.as_str()), (201, "paid"), "{retry:?}");

    let late = ["resolve", id, "--outcome", "failed", "--attempt", "1", "--reason", "I thought not"];
    let late = gateway.operations(&late);
    assert_eq!(late.status.code(), Some(1), "{late:?}");
    let said = [late.stdout, late.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(said.contains("It is now: completed (attempt 1"), "what is there now: {said}");
    let there = gateway.operation(KEY).unwrap();
    assert_eq!((&there["state"], &there["dead_letter"]), (&json!("completed"), &json!(false)));
    let lines = |operation: &Value| operation["history"].as_array().unwrap().len();
    assert_eq!(lines(&there), lines(&given_up) + 1, "{there}");
    assert!(there["history"].to_string().contains("the bank has it"), "{there}");
    assert!(service.executions().is_empty());
}

#[test]
fn an_answer_that_comes_late_and_what_the_service_says_when_asked_are_one_outcome() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!("lease = \"300ms\"\ntimeout = \"200ms\"\n{}", poll(&service, ""));
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest));
    let first = gateway.pay(KEY, "late");
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"), "{first:?}");

    let settled = gateway.until(KEY, |operation| operation["state"] == "completed");
    let retry = gateway.pay(KEY, "answer");
    assert_eq!((retry.status, retry.body.as_str()), (201, r#"{ "payment": 1 }"#));
    assert_eq!(service.questions().len(), 1);
    assert_eq!(service.executions(), [json!([settled["operation_id"], 1])]);
    let there = gateway.operation(KEY).unwrap();
    assert_eq!((&there["state"], &there["attempt"]), (&json!("completed"), &json!(1)));
}

#[test]
fn told_twice_to_end_it_waits_for_no_answer() {
    let service = Service::start();
    // Takes questions, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!(
        "[route.reconcile]\npoll = \"http://{}/operations/{{operation_id}}\"\nevery = \"100ms\"\n",
        silent.local_addr().unwrap()
    );
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest));
    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);
    let _question = until("it asks", || silent.accept().ok());

    gateway.is_told_to_end();
    until("it serves nobody", || TcpStream::connect(gateway.address).is_err().then_some(()));
    assert_eq!(gateway.ask("/readyz").status, 503, "it waits for the answer");
    // No request is under way any more by then.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(gateway.stop(), Some(1), "and then it does not");
}
