//! A gateway reloads its configuration while it serves.

use crate::support::{
    Answer, Ask, Client, Gateway, PAYMENTS, Service, TOKEN, configuration, key, payment, semel,
};
use std::collections::HashMap;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const RELOADS: usize = 100;
const CLIENTS: usize = 6;

/// How often a file was applied, or refused.
async fn reloads(gateway: &Gateway, result: &str) -> usize {
    let metrics = String::from_utf8(gateway.asked("/metrics").await.body).unwrap();
    let name = format!("api_idempotency_config_reloads_total{{result=\"{result}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&name));
    count.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

/// SIGHUP, and then until it is counted.
async fn reload(gateway: &Gateway, result: &str) {
    let before = reloads(gateway, result).await;
    gateway.is_told_to_reload();
    while reloads(gateway, result).await == before {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// `semel reload`, with this token.
fn ask_to_reload(gateway: &Gateway, token: &str) -> Output {
    let admin = format!("http://{}", gateway.admin);
    semel().args(["reload", "--admin", &admin]).env("SEMEL_ADMIN_TOKEN", token).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_reloads_under_load_and_every_request_is_answered_rightly() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    // They differ in everything that a reload exchanges, but in what would make live keys execute again: statuses, routes, fingerprints, limits, who is believed, what is done beside.
    let one = configuration(&service, &store, "", PAYMENTS);
    let other = configuration(
        &service,
        &store,
        "profile = \"stripe\"",
        &format!(
            "[key]\nscope = \"operation\"\n{PAYMENTS}retention = \"48h\"\n[route.fingerprint]\nignore = [\"/trace\"]\n\
             [[route]]\noperation = \"refund\"\nmatch = \"POST /refunds\"\n\
             [limits]\nconnections = 50\nrequests_in_flight = 40\n[worker]\nforget = \"soft\"\n"
        ),
    );
    let wrong = one.replace("key = \"required\"", "key = \"perhaps\"");
    let gateway = Gateway::configured(&service, &store, "", PAYMENTS).await;

    let over = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| tokio::spawn(pay_on(gateway.address, Arc::clone(&next), Arc::clone(&over))))
        .collect();
    for number in 0..RELOADS {
        let (file, result) = match number % 10 {
            9 => (&wrong, "refused"),
            even if even % 2 == 0 => (&other, "applied"),
            _ => (&one, "applied"),
        };
        gateway.is_given(file);
        reload(&gateway, result).await;
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!((reloads(&gateway, "applied").await, reloads(&gateway, "refused").await), (90, 10));
    let mut counts = HashMap::<_, usize>::new();
    for line in service.executions().into_iter().filter(|line| line.starts_with("POST")) {
        *counts.entry(line).or_default() += 1;
    }
    assert_eq!(counts.len(), next.load(Ordering::Relaxed), "each key was executed");
    assert!(counts.len() > RELOADS, "there was load: {}", counts.len());
    assert_eq!(counts.values().find(|count| **count != 1), None, "and once: {counts:?}");
    let doubtful = gateway.asked("/v1/operations?state=unknown").await;
    assert_eq!(doubtful.json()["operations"], serde_json::json!([]));
}

/// Pays over one connection, retries, misuses the key and reads, until it is over.
async fn pay_on(address: std::net::SocketAddr, next: Arc<AtomicUsize>, over: Arc<AtomicBool>) {
    let mut client = Client::connect(address).await;
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let ask = Ask::new(&format!("POST /payments?number={number}"))
            .key(&key(&format!("payment-number-{number}")))
            .body(format!(r#"{{"amount":"{number}.00"}}"#));
        let first = client.send(&ask).await;
        assert!(first.status == 201 && !first.is_replay(), "{first:?}");
        let retry = client.send(&ask).await;
        assert!(retry.status == 201 && retry.is_replay() && retry.body == first.body, "{retry:?}");
        let misuse = client.send(&ask.body(r#"{"amount":"1000000.00"}"#)).await;
        assert!([422, 400].contains(&misuse.status), "as the profile in force has it: {misuse:?}");
        assert_eq!(misuse.code(), "idempotency_key_reused_with_different_payload");
        let read = client.send(&Ask::new("GET /payments").field("x-status: 200")).await;
        assert_eq!(read.status, 200, "{read:?}");
    }
}

fn traced(name: &str, trace: &str) -> Ask {
    payment(name)
        .field("Content-Type: application/json")
        .body(format!(r#"{{"amount":"10.00","trace":"{trace}"}}"#))
}

#[tokio::test]
async fn changed_fingerprints_keep_matching_old_records_by_their_recipe() {
    let service = Service::start();
    let whole = configuration(&service, "memory:", "", PAYMENTS);
    let ignoring = format!("{PAYMENTS}[route.fingerprint]\nignore = [\"/trace\"]\n");
    let ignoring = configuration(&service, "memory:", "", &ignoring);
    let gateway = Gateway::configured(&service, "memory:", "", PAYMENTS).await;
    let replays = |answer: &Answer| answer.status == 201 && answer.is_replay();
    let misused = |answer: &Answer| answer.status == 422;

    assert_eq!(gateway.send(&traced("payment-before", "a")).await.status, 201);
    gateway.is_given(&ignoring);
    reload(&gateway, "applied").await;
    assert!(replays(&gateway.send(&traced("payment-before", "a")).await));
    assert!(misused(&gateway.send(&traced("payment-before", "b")).await), "by the old rules it differs");
    assert_eq!(gateway.send(&traced("payment-between", "a")).await.status, 201);
    assert!(replays(&gateway.send(&traced("payment-between", "b")).await), "by the new ones it does not");
    gateway.is_given(&whole);
    reload(&gateway, "applied").await;
    assert!(replays(&gateway.send(&traced("payment-between", "c")).await));
    assert!(misused(&gateway.send(&traced("payment-before", "b")).await));
    assert_eq!(service.executed(), 2);
}

#[tokio::test]
async fn a_request_under_way_ends_by_the_rules_that_it_began_with() {
    let service = Service::start();
    let gateway = Gateway::configured(&service, "memory:", "", PAYMENTS).await;
    let held = payment("payment-under-way").field("x-wait: go");
    let mut client = Client::connect(gateway.address).await;
    client.write(held.bytes()).await;
    service.has_executed(1).await;

    // Nothing of it is protected any more, and there is room for one request at a time.
    let elsewhere = PAYMENTS.replace("/payments", "/elsewhere");
    gateway.is_given(&configuration(
        &service,
        "memory:",
        "",
        &format!("{elsewhere}[limits]\nrequests_in_flight = 1\n"),
    ));
    reload(&gateway, "applied").await;
    let busy = gateway.send(&Ask::new("GET /payments")).await;
    assert_eq!(busy.status, 503, "what is under way counts: {busy:?}");
    service.let_go("go");
    let answer = client.answer().await;
    assert_eq!((answer.status, answer.header("semel-operation-id").is_some()), (201, true));
    let passing = gateway.send(&payment("payment-unprotected")).await;
    assert_eq!((passing.status, passing.header("semel-operation-id")), (201, None));

    gateway.is_given(&configuration(&service, "memory:", "", PAYMENTS));
    reload(&gateway, "applied").await;
    let retry = client.send(&held).await;
    assert!(retry.is_replay() && retry.body == answer.body, "its outcome was stored: {retry:?}");
}

#[tokio::test]
async fn a_wrong_file_is_refused_with_its_place_and_the_old_one_stays() {
    let service = Service::start();
    let right = configuration(&service, "memory:", "", PAYMENTS);
    let gateway = Gateway::configured(&service, "memory:", "", PAYMENTS).await;
    let refused = |file: &str| {
        gateway.is_given(file);
        let output = ask_to_reload(&gateway, TOKEN);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        said(&output)
    };

    let wrong = refused(&right.replace("key = \"required\"", "key = \"perhaps\""));
    let line = right.lines().position(|line| line.starts_with("key")).unwrap() + 1;
    let place = format!("semel.toml:{line}:7");
    assert!(wrong.contains(&place) && wrong.contains("^^^"), "as a compiler would show it: {wrong}");
    gateway.has_logged(&place).await;
    gateway.has_logged("the current configuration stays in force").await;
    let moved = right.replacen("127.0.0.1:0", "127.0.0.1:1", 1).replacen("127.0.0.1:0", "127.0.0.1:2", 1);
    let gone = refused(&moved.replace("\"memory:\"", "\"sqlite:other.db\""));
    for setting in ["restart", " listen", "store", "[admin] listen"] {
        assert!(gone.contains(setting), "{setting}: {gone}");
    }
    assert_eq!((reloads(&gateway, "applied").await, reloads(&gateway, "refused").await), (0, 2));
    let other = refused(&right.replace(TOKEN, "env:SEMEL_NOT_IN_THIS_PROCESS"));
    assert!(other.contains("SEMEL_NOT_IN_THIS_PROCESS is not set"), "{other}");
    assert_eq!(gateway.send(&payment("payment-as-before").without("Idempotency-Key")).await.status, 400);

    gateway.is_given(&right.replace("key = \"required\"", "key = \"optional\""));
    let taken = ask_to_reload(&gateway, TOKEN);
    assert_eq!(taken.status.code(), Some(0), "{taken:?}");
    assert!(said(&taken).contains("is in force: protects create_payment"), "{taken:?}");
    assert_eq!(gateway.send(&payment("payment-as-now").without("Idempotency-Key")).await.status, 201);
}

#[tokio::test]
async fn a_new_token_replaces_the_old_one() {
    const NEW: &str = "t0ken-of-the-next-operator";
    let service = Service::start();
    let gateway = Gateway::configured(&service, "memory:", "", PAYMENTS).await;
    gateway.is_given(&configuration(&service, "memory:", "", PAYMENTS).replace(TOKEN, NEW));
    assert_eq!(ask_to_reload(&gateway, "t0ken-of-nobody").status.code(), Some(1), "who asks has to show it");
    assert_eq!(ask_to_reload(&gateway, NEW).status.code(), Some(1), "it is not in force yet");
    assert_eq!(ask_to_reload(&gateway, TOKEN).status.code(), Some(0));
    assert_eq!(gateway.asked("/v1/operations").await.status, 401, "the old token is not valid any more");
    assert_eq!(ask_to_reload(&gateway, NEW).status.code(), Some(0));
    // The probes need none.
    for question in [&["health"][..], &["health", "--ready"]] {
        let admin = format!("http://{}", gateway.admin);
        let output = semel().args(question).args(["--admin", &admin]).output().unwrap();
        assert!(output.status.success() && said(&output).is_empty(), "{output:?}");
    }
}
