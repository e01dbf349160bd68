//! The admin API against its own description, by a tool that tries what a person would not.

use crate::support::{Gateway, Receiver, SECRET, Service, TOKEN, config, python_tool, until};
use semel_events::message::Event;
use semel_events::outbox::sqlite::append;
use semel_sqlite::SqliteStore;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A gateway that has something to show: operations in several states, and an outbox with a dead letter.
struct Shown {
    directory: TempDir,
    gateway: Gateway,
    _service: Service,
    _receiver: Receiver,
}

fn shown() -> Shown {
    let directory = tempfile::tempdir().unwrap();
    let (service, receiver) = (Service::start(), Receiver::start());
    let rest = format!(
        r#"
lease = "600s"
timeout = "500s"
[[webhook]]
source = "provider"
secrets = ["{SECRET}"]
[outbox]
sink = "http://{}/events"
secret = "{SECRET}"
attempts = 1
"#,
        receiver.address
    );
    let file = config(directory.path(), "semel.toml", service.address, &rest);
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.pay("completed-0000001", "answer").status, 201);
    for number in 0..3 {
        assert_eq!(gateway.pay(&format!("unknown-00000000{number}"), "hang-up").status, 504);
    }
    drop(gateway.begin("in-progress-00001", "hold"));
    until("the operation in progress", || gateway.operation("in-progress-00001"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = SqliteStore::open(directory.path().join("semel.db")).await.unwrap();
        let events = ["Bad", "PaymentCaptured"].map(|kind| Event::json("payment/pay_1", kind, "{}"));
        store.transaction(move |tx| append(tx, &events)).await.unwrap();
        store.close().await;
    });
    until("the dead letter", || {
        let listed = gateway.ask("/v1/outbox?dead_letter=true").json();
        (listed["events"].as_array().unwrap().len() == 1).then_some(())
    });
    Shown { directory, gateway, _service: service, _receiver: receiver }
}

/// What is tried where ids are wanted, so that not everything ends with `404`.
fn known(gateway: &Gateway, list: &str, of: &str, id: &str) -> String {
    let listed = gateway.ask(list).json();
    let ids = listed[of].as_array().unwrap().iter().map(|item| item[id].to_string());
    format!("[{}]", ids.collect::<Vec<_>>().join(", "))
}

#[test]
fn the_admin_api_is_what_its_description_says() {
    let shown = shown();
    let gateway = &shown.gateway;
    let (operations, events) = (
        known(gateway, "/v1/operations?state=unknown", "operations", "operation_id"),
        known(gateway, "/v1/outbox", "events", "event_id"),
    );
    // Where bodies are made up at random, some have two header names that differ in case alone: these are refused, and no description
    // could say so.
    let settings = format!(
        r#"
[dictionaries.operations]
values = {operations}
[dictionaries.events]
values = {events}
[auth.openapi.token]
bearer = "{TOKEN}"
[[operations]]
include-path-regex = "^/v1/operations/"
[operations.parameters]
"path.id" = {{ dictionary = "operations", probability = 0.8 }}
[operations.phases.fuzzing.checks.positive_data_acceptance]
enabled = false
[operations.phases.stateful.checks.positive_data_acceptance]
enabled = false
[[operations]]
include-path = "/v1/webhooks/{{source}}"
[operations.parameters]
"path.source" = "provider"
[[operations]]
include-path-regex = "^/v1/outbox/"
[operations.parameters]
"path.id" = {{ dictionary = "events", probability = 0.5 }}
"#
    );
    let file = shown.directory.path().join("schemathesis.toml");
    std::fs::write(&file, settings).unwrap();
    let tried = Command::new(python_tool("st"))
        .arg("--config-file")
        .arg(&file)
        .args(["run", &format!("http://{}/v1/openapi.json", gateway.admin)])
        .args(["--seed", "7", "--max-examples", "10", "--generation-deterministic", "--no-shrink"])
        .args(["--continue-on-failure", "--no-color"])
        .current_dir(shown.directory.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&tried.stdout);
    assert!(tried.status.success(), "{said}\n{}", String::from_utf8_lossy(&tried.stderr));
    // It came as far as settling, not only to ids that nobody has.
    let left = gateway.ask("/v1/operations?state=unknown").json();
    assert!(left["operations"].as_array().unwrap().len() < 3, "nothing was settled on the way: {said}");
}
