//! A gateway ends, by request and without one.

use crate::support::{
    Ask, Client, Database, Gateway, PAYMENTS, Service, payment, post, send_until_settled, try_send,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CLIENTS: usize = 32;
/// How many requests have come before it is told to end.
const LOAD: usize = 150;
/// How many more are in the service at that moment.
const HELD: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn told_to_end_under_load_it_leaves_no_doubt() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let mut gateway = Gateway::configured(&service, &store, "", PAYMENTS).await;
    let address = gateway.address;

    let mut held = Vec::new();
    for number in 0..HELD {
        let mut client = Client::connect(address).await;
        client.write(payment(&format!("held-payment-{number}")).field("x-wait: go").bytes()).await;
        held.push(client);
    }
    service.has_executed(HELD).await;
    let next = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| {
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(answer) = try_send(address, &numbered(number)).await else { return };
                    match answer.status {
                        201 => assert!(!answer.is_replay(), "{answer:?}"),
                        // The store may be late on a machine that is busy with other things.
                        503 => assert_eq!(answer.code(), "idempotency_store_unavailable"),
                        _ => panic!("{answer:?}"),
                    }
                }
            })
        })
        .collect();
    service.has_executed(HELD + LOAD).await;
    gateway.is_told_to_end();
    gateway.has_logged("stopping: no new connections").await;
    assert_eq!(gateway.asked("/readyz").await.status, 503, "nobody should send more");
    service.let_go("go");
    for mut client in held {
        assert_eq!(client.answer().await.status, 201, "what is under way ends");
    }
    assert_eq!(gateway.ended().await.code(), Some(0));
    for client in clients {
        client.await.unwrap();
    }

    let executions = service.executions();
    let gateway = Gateway::configured(&service, &store, "", PAYMENTS).await;
    for state in ["unknown", "in_progress"] {
        let listed = gateway.asked(&format!("/v1/operations?state={state}")).await;
        assert_eq!(listed.status, 200, "{listed:?}");
        assert_eq!(listed.json()["operations"], serde_json::json!([]), "{state}");
    }
    let mut counts = HashMap::<_, usize>::new();
    for line in executions.iter().filter(|line| line.contains('?')) {
        *counts.entry(line).or_default() += 1;
    }
    assert!(counts.len() >= LOAD);
    for (line, count) in counts {
        assert_eq!(count, 1, "{line}");
        let number = line.rsplit_once('=').unwrap().1.parse().unwrap();
        let retry = gateway.send(&numbered(number)).await;
        assert!(retry.status == 201 && retry.is_replay(), "{line}: {retry:?}");
    }
    assert_eq!(service.executed(), executions.len());
}

fn numbered(number: usize) -> Ask {
    post(&format!("/payments?number={number}"), &format!("payment-number-{number}"))
}

#[tokio::test]
async fn killed_in_the_middle_it_leaves_doubt_and_nobody_executes_again() {
    let route = &format!("{PAYMENTS}lease = \"1s\"\ntimeout = \"900ms\"\n");
    let (service, database) = (Service::start(), Database::new().await);
    let one = Gateway::configured(&service, &database.url(), "", route).await;
    let other = Gateway::configured(&service, &database.url(), "", route).await;
    let ask = payment("payment-of-the-killed").field("x-wait: go");
    let mut client = Client::connect(one.address).await;
    client.write(ask.bytes()).await;
    service.has_executed(1).await;
    one.kill();

    let retry = send_until_settled(other.address, &ask).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert!(retry.header("retry-after").is_some());
    // The service answers, and there is nobody left to hear it.
    service.let_go("go");
    let third = Gateway::configured(&service, &database.url(), "", route).await;
    for gateway in [&other, &third] {
        let retry = send_until_settled(gateway.address, &ask).await;
        assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_outcome_unknown"));
    }
    assert_eq!(service.executed(), 1);
}
