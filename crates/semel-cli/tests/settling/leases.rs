//! An owner dies, and nobody comes by.

use crate::support::{Gateway, Service, Worker, config, until};
use serde_json::json;

const KEY: &str = "key-of-a-payment-0001";

#[test]
fn a_worker_notices_that_a_gateway_was_killed_in_the_middle_of_it() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "lease = \"500ms\"\ntimeout = \"400ms\"\n[worker]\nin_gateway = false\n";
    let file = config(directory.path(), "semel.toml", service.address, rest);
    let (killed, other) = (Gateway::start(&file), Gateway::start(&file));
    let _waiting = killed.begin(KEY, "hold");
    until("the service is at work", || (service.executions().len() == 1).then_some(()));
    killed.kill();
    assert!(["in_progress", "unknown"].contains(&other.operation(KEY).unwrap()["state"].as_str().unwrap()));

    let worker = Worker::start(&file);
    // Without a way to find out, it is for a person at once.
    let left = other.until(KEY, |operation| operation["dead_letter"] == true);
    assert_eq!(left["state"], "unknown");
    assert_eq!(worker.stop(), Some(0));
    let retry = other.pay(KEY, "answer");
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(service.executions(), [json!([left["operation_id"], 1])]);
}
