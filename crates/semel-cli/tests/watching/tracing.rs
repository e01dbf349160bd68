//! Traces and metrics, as a collector gets them.

use crate::support::{Answer, Gateway, Worker, World, config, exchange, until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use tempfile::TempDir;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

fn start(collector: SocketAddr, service: SocketAddr, settings: &str) -> (TempDir, Gateway) {
    let (directory, file) = written(collector, service, settings);
    let gateway = Gateway::start(&file);
    (directory, gateway)
}

fn written(collector: SocketAddr, service: SocketAddr, settings: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let rest = format!(
        "[telemetry]\notlp = \"http://{collector}\"\n{settings}\n[telemetry.headers]\nauthorization = \"Bearer of-the-collector\"\n"
    );
    let file = config(directory.path(), "semel.toml", service, &rest);
    (directory, file)
}

fn pay(gateway: &Gateway, key: &str, amount: &str, headers: &[(&str, &str)]) -> Answer {
    let body = format!(r#"{{"amount":"{amount}"}}"#);
    let own = [("idempotency-key", key), ("content-type", "application/json")];
    exchange(gateway.address, "POST", "/payments?token=in-the-query", &[&own, headers].concat(), &body)
}

/// The spans of requests, by what was decided.
fn decided<'a>(received: &'a Value, decision: &str) -> Vec<&'a Value> {
    let spans = received["spans"].as_array().unwrap().iter();
    spans.filter(|span| span["attributes"]["semel.decision"] == decision).collect()
}

fn below<'a>(received: &'a Value, span: &Value) -> Vec<&'a Value> {
    let spans = received["spans"].as_array().unwrap().iter();
    spans.filter(|below| below["parent"] == span["id"] && below["trace"] == span["trace"]).collect()
}

#[test]
fn every_request_is_told_by_its_spans() {
    let world = World::start();
    let (_directory, gateway) = start(world.address, world.address, "service_name = \"payments-gateway\"");
    let given = format!("00-{TRACE}-{CALLER}-01");
    let context = [
        ("traceparent", given.as_str()),
        ("tracestate", "vendor=1"),
        ("authorization", "Bearer of-the-client"),
    ];
    let first = pay(&gateway, "a-key-of-the-client", "12.50", &context);
    assert_eq!(first.status, 201);
    let told_service = first.json();
    assert_eq!(pay(&gateway, "a-key-of-the-client", "12.50", &context).status, 201);
    assert_eq!(pay(&gateway, "a-key-of-the-client", "99.99", &context[2..]).status, 422);
    let mut held = gateway.begin("another-key-of-the-client", "hold");
    until("the held one", || gateway.operation("another-key-of-the-client"));
    assert_eq!(gateway.pay("another-key-of-the-client", "hold").status, 409);
    world.release();
    let mut answer = String::new();
    held.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert_eq!(exchange(gateway.address, "POST", "/payments", &[], "{}").status, 400);
    let unprotected = exchange(gateway.address, "POST", "/carts/7", &[], "{}");
    assert_eq!(unprotected.status, 201);

    let received = until("all spans", || {
        let received = world.received();
        let requests = received["spans"].as_array().unwrap().iter().filter(|span| span["kind"] == 2);
        (requests.count() == 7).then_some(received)
    });
    assert_eq!(received["authorizations"], json!(["Bearer of-the-collector"]));

    let created = decided(&received, "created");
    assert_eq!(created.len(), 2);
    let of_first = created.iter().find(|span| span["trace"] == TRACE).unwrap();
    assert_eq!(of_first["parent"], CALLER);
    assert_eq!(of_first["name"], "POST /payments");
    assert_eq!(of_first["resource"]["service.name"], "payments-gateway");
    let attributes = &of_first["attributes"];
    for (name, value) in [
        ("http.request.method", json!("POST")),
        ("http.route", json!("/payments")),
        ("url.path", json!("/payments")),
        ("http.response.status_code", json!(201)),
        ("semel.operation", json!("create_payment")),
        ("semel.operation_id", json!(first.header("semel-operation-id").unwrap())),
        ("semel.attempt", json!(1)),
        ("semel.outcome", json!("completed")),
        ("semel.batch_size", json!(1)),
    ] {
        assert_eq!(attributes[name], value, "{name}: {attributes}");
    }
    assert!(attributes["semel.store_seconds"].as_f64() > Some(0.0), "{attributes}");
    let mut steps: Vec<_> = below(&received, of_first);
    steps.sort_by_key(|span| span["start"].as_u64());
    let names: Vec<_> = steps.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["store create", "POST", "store swap"]);
    assert_eq!(steps[1]["attributes"]["server.port"], world.address.port());
    assert!(steps.iter().all(|span| span["took"].as_u64() <= of_first["took"].as_u64()));
    // The service continues the client's trace, below the gateway's call of it.
    let expected = format!("00-{TRACE}-{}-01", steps[1]["id"].as_str().unwrap());
    assert_eq!(told_service, json!({ "traceparent": expected, "tracestate": "vendor=1" }));

    let replays = decided(&received, "replay");
    assert_eq!(replays.len(), 1);
    assert_eq!(replays[0]["attributes"]["semel.operation_id"], attributes["semel.operation_id"]);
    assert!(below(&received, replays[0]).iter().all(|span| span["name"] != "POST"), "it was not executed");
    let misuse = decided(&received, "key_misuse");
    assert_eq!(misuse[0]["attributes"]["http.response.status_code"], 422);
    assert_eq!(misuse[0]["attributes"]["semel.problem"], "idempotency_key_reused_with_different_payload");
    assert_ne!(misuse[0]["trace"], TRACE);
    assert_eq!(decided(&received, "in_progress")[0]["attributes"]["http.response.status_code"], 409);
    let spans = received["spans"].as_array().unwrap();
    let missing = spans.iter().find(|span| span["attributes"]["semel.problem"] == "idempotency_key_missing");
    assert_eq!(missing.unwrap()["attributes"]["semel.operation"], "create_payment");
    let passed = spans.iter().find(|span| span["attributes"]["url.path"] == "/carts/7").unwrap();
    assert_eq!(passed["name"], "POST");
    assert!(passed["attributes"]["semel.operation"].is_null());
    assert_eq!(below(&received, passed).len(), 1, "the service alone");
    let raw = received["raw"].to_string();
    for secret in ["key-of-the-client", "12.50", "of-the-client", "in-the-query"] {
        assert!(!raw.contains(secret), "{secret}");
    }
    let counted = || gateway.metric("api_idempotency_traced_requests_total{result=\"exported\"}") == 7;
    until("the count", || counted().then_some(()));
}

#[test]
fn whoever_calls_decides_what_is_recorded() {
    let world = World::start();
    let (_directory, gateway) = start(world.address, world.address, "sampling = 0");
    let unrecorded = format!("00-{TRACE}-{CALLER}-00");
    let passed = pay(&gateway, "not-recorded-00001", "1.00", &[("traceparent", &unrecorded)]).json();
    assert_eq!(passed["traceparent"], unrecorded, "it goes through as it came");
    let own = pay(&gateway, "not-recorded-00002", "1.00", &[]).json();
    assert!(own["traceparent"].as_str().unwrap().ends_with("-00"), "{own}");
    let recorded = format!("00-{TRACE}-{CALLER}-01");
    assert_eq!(pay(&gateway, "recorded-000000001", "1.00", &[("traceparent", &recorded)]).status, 201);
    // What is left in the queue is exported at the end.
    assert_eq!(gateway.stop(), Some(0));
    let received = world.received();
    assert_eq!(decided(&received, "created").len(), 1);
    assert!(received["spans"].as_array().unwrap().iter().all(|span| span["trace"] == TRACE));
}

/// What `/metrics` says, spelled as the collector spells it. What changes by itself is left out.
fn scraped(gateway: &Gateway) -> BTreeMap<String, f64> {
    let text = gateway.ask("/metrics").body;
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let read = samples.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let mut labels: Vec<&str> =
            labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()).collect();
        labels.sort_unstable();
        let bound = labels.iter().position(|label| label.starts_with("le=")).map(|at| labels.remove(at));
        let name = match bound.map(|bound| bound.trim_start_matches("le=").trim_matches('"')) {
            Some("+Inf") => return None,
            Some(bound) => format!("{name}<={bound}"),
            None => name.to_owned(),
        };
        let value: f64 = value.parse().ok()?;
        (!value.is_nan()).then(|| (format!("{name}{{{}}}", labels.join(",")), value))
    });
    read.collect()
}

#[test]
fn the_metrics_that_are_sent_are_those_that_are_scraped() {
    let world = World::start();
    let settings = "metrics = true\nmetrics_every = \"100ms\"";
    let (_directory, gateway) = start(world.address, world.address, settings);
    for key in ["metrics-0000000001", "metrics-0000000001", "metrics-0000000002"] {
        assert_eq!(pay(&gateway, key, "1.00", &[]).status, 201);
    }
    // Background work goes on, and changes numbers between what is sent and what is scraped: in some pair they are the same.
    let sent = until("the same numbers", || {
        let sent: BTreeMap<String, f64> =
            serde_json::from_value(world.received()["metrics"].clone()).unwrap();
        let scraped = scraped(&gateway);
        // JSON in between costs a number its last bit, which is more in a time of day than in a count.
        let differs =
            |name: &&String| (sent[*name] - scraped[*name]).abs() > scraped[*name].abs().max(1.0) * 1e-12;
        let same = sent.keys().eq(scraped.keys()) && !sent.keys().any(|name| differs(&name));
        let exported = sent.get("api_idempotency_traced_requests_total{result=\"exported\"}");
        (same && exported == Some(&3.0)).then_some(sent)
    });
    assert_eq!(sent["api_idempotency_reserve_created_total{operation=\"create_payment\"}"], 2.0);
    assert_eq!(sent["api_idempotency_reserve_replay_total{operation=\"create_payment\"}"], 1.0);
    assert_eq!(sent["api_idempotency_request_seconds_count{operation=\"create_payment\"}"], 3.0);
    assert!(sent.len() > 100, "{sent:?}");
}

#[test]
fn a_collector_that_never_answers_is_nobodys_business() {
    let world = World::start();
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_directory, gateway) =
        start(silent.local_addr().unwrap(), world.address, "metrics = true\nmetrics_every = \"100ms\"");
    for number in 0..20 {
        assert_eq!(pay(&gateway, &format!("no-collector-{number:05}"), "1.00", &[]).status, 201);
    }
    // It waits for the collector no longer than it said, and ends well.
    assert_eq!(gateway.stop(), Some(0));
}

#[test]
fn what_a_collector_does_not_take_at_once_is_sent_again() {
    let world = World::start();
    let (_directory, gateway) = start(world.address, world.address, "");
    world.refuse();
    assert_eq!(pay(&gateway, "sent-again-0000001", "1.00", &[]).status, 201);
    until("the first try", || world.received()["refused"].as_u64().filter(|times| *times > 0));
    world.accept();
    until("the next one", || (decided(&world.received(), "created").len() == 1).then_some(()));
    let counted = |result: &str| {
        gateway.metric(&format!("api_idempotency_traced_requests_total{{result=\"{result}\"}}"))
    };
    until("the count", || (counted("exported") == 1).then_some(()));
    assert_eq!(counted("dropped"), 0);
}

#[test]
fn a_worker_sends_its_metrics_too() {
    let world = World::start();
    let settings = "metrics = true\nmetrics_every = \"100ms\"";
    let (_directory, file) = written(world.address, world.address, settings);
    let worker = Worker::start(&file);
    let name = "api_idempotency_unknown{operation=\"create_payment\"}";
    until("its numbers", || (world.received()["metrics"][name] == 0.0).then_some(()));
    assert_eq!(worker.stop(), Some(0));
}
