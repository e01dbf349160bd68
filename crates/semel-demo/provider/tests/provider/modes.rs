//! Every way to misbehave, over real sockets.

use crate::harness::{PATIENCE, start, terms};
use payment_provider::{Mode, Settings};
use serde_json::json;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection on which this charge was asked for.
async fn ask_to_charge(address: SocketAddr, identity: &str, mode: &str) -> TcpStream {
    let body = terms("1.00").to_string();
    let request = format!(
        "POST /charges HTTP/1.1\r\nhost: provider\r\nidempotency-key: {identity}\r\nx-provider-mode: {mode}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// All that comes until the other side closes the connection.
async fn all_bytes(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection is closed").unwrap();
    bytes
}

#[tokio::test]
async fn a_connection_is_closed_without_a_byte_after_the_effect_or_before() {
    let provider = start(Settings::default()).await;
    for (mode, effects) in [("drop-after", 1), ("drop-before", 0)] {
        let stream = ask_to_charge(provider.client.address, mode, mode).await;
        assert_eq!(all_bytes(stream).await, b"", "{mode}");
        assert_eq!(provider.client.effects(mode).await, effects, "{mode}");
        // The next one is served, and finds what was done.
        let again = provider.client.charge(mode, "1.00").await;
        assert_eq!((again.status, again.replayed()), (201, effects == 1), "{mode}");
        assert_eq!(provider.client.effects(mode).await, 1, "{mode}");
    }
}

#[tokio::test]
async fn an_answer_says_500_after_the_effect_or_503_before_it() {
    let provider = start(Settings::default()).await;
    for (mode, status, effects) in [("error-after", 500, 1), ("reject", 503, 0)] {
        let answer = provider.client.charge_with(mode, "1.00", &[("x-provider-mode", mode)]).await;
        assert_eq!(answer.status, status, "{mode}");
        assert_eq!(provider.client.effects(mode).await, effects, "{mode}");
    }
    // A refusal is covered up as well: who sees a 500 knows nothing.
    assert_eq!(provider.client.ask("order-1", 1).await.status, 404);
    let covered = provider.client.charge_with("order-1", "1.00", &[("x-provider-mode", "error-after")]).await;
    assert_eq!(covered.status, 500);
    assert_eq!(provider.client.effects("order-1").await, 0);
}

#[tokio::test]
async fn a_declined_charge_stays_declined() {
    let provider = start(Settings::default()).await;
    let declined = provider.client.charge_with("order-1", "1.00", &[("x-provider-mode", "decline")]).await;
    assert_eq!(declined.code(), (402, "card_declined".into()));
    assert_eq!(declined.json()["status"], "declined");
    let provider = provider.restart(Settings::default()).await;
    let client = provider.client;
    let again = client.charge("order-1", "1.00").await;
    assert_eq!((again.status, again.replayed(), &again.body), (402, true, &declined.body));
    let asked = client.ask("order-1", 1).await;
    assert_eq!((asked.status, &asked.body), (200, &declined.body));
    let summary = client.summary().await;
    assert_eq!((&summary["charges"], &summary["declined"]), (&0.into(), &1.into()));
}

#[tokio::test]
async fn a_stall_after_the_effect_keeps_the_answer_back() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let waiting = tokio::spawn(client.charge_with("order-1", "1.00", &[("x-provider-mode", "stall-after")]));
    client.stalled(1).await;
    assert_eq!(client.effects("order-1").await, 1);
    assert!(!waiting.is_finished());
    assert_eq!(client.delete("/stalls").await.json(), json!({ "before": 0, "after": 1 }));
    assert_eq!(waiting.await.unwrap().status, 201);
    client.stalled(0).await;

    // It also ends by itself.
    client.set(&json!({ "stall": "20ms" })).await;
    assert_eq!(
        client.charge_with("order-2", "1.00", &[("x-provider-mode", "stall-after")]).await.status,
        201
    );
}

#[tokio::test]
async fn a_stall_after_the_effect_ends_when_its_client_goes_away() {
    let provider = start(Settings::default()).await;
    let stream = ask_to_charge(provider.client.address, "order-1", "stall-after").await;
    provider.client.stalled(1).await;
    drop(stream);
    let gone = async { while provider.client.get("/stalls").await.json()["after"] != 0 {} };
    timeout(PATIENCE, gone).await.expect("nobody is kept waiting who is not there");
    assert_eq!(provider.client.effects("order-1").await, 1);
}

#[tokio::test]
async fn a_stall_before_the_effect_outlives_its_client() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let mut stream = ask_to_charge(client.address, "order-1", "stall-before").await;
    client.stalled(1).await;
    assert_eq!(client.effects("order-1").await, 0);
    // The other side closes too: it has noticed that its client is gone.
    stream.shutdown().await.unwrap();
    assert_eq!(all_bytes(stream).await, b"");
    client.stalled(1).await;
    client.delete("/stalls").await;
    client.until(|summary| summary["charges"] == 1).await;
    assert_eq!(client.effects("order-1").await, 1);
}

#[tokio::test]
async fn stalled_requests_do_not_keep_the_process_from_ending() {
    let provider = start(Settings::default()).await;
    let client = provider.client;
    let charge = |identity, mode| tokio::spawn(client.charge_with(identity, "1.00", mode));
    let before = charge("order-1", &[("x-provider-mode", "stall-before")]);
    let after = charge("order-2", &[("x-provider-mode", "stall-after")]);
    client.stalled(2).await;
    let provider = timeout(PATIENCE, provider.restart(Settings::default())).await.expect("it ends");
    assert_eq!((before.await.unwrap().status, after.await.unwrap().status), (201, 201));
    assert_eq!(provider.client.summary().await["charges"], 2);
}

#[tokio::test]
async fn every_nth_request_is_lost() {
    let misbehave = "lose-every=3".parse().unwrap();
    let provider = start(Settings { misbehave, ..Settings::default() }).await;
    let mut answered = Vec::new();
    for number in 1..=9 {
        let identity = format!("order-{number}");
        let answer = provider.client.try_post("/charges", &identity, &[], &terms("1.00")).await;
        assert_eq!(provider.client.effects(&identity).await, u64::from(answer.is_ok()));
        answered.push(answer.is_ok());
    }
    assert_eq!(answered, [true, true, false, true, true, false, true, true, false]);
}

#[tokio::test]
async fn a_header_beats_the_rates() {
    let misbehave = "reject=1".parse().unwrap();
    let provider = start(Settings { misbehave, ..Settings::default() }).await;
    assert_eq!(provider.client.charge("order-1", "1.00").await.status, 503);
    assert_eq!(
        provider.client.charge_with("order-1", "1.00", &[("x-provider-mode", "none")]).await.status,
        201
    );
}

#[tokio::test]
async fn refunds_misbehave_as_charges_do() {
    let provider = start(Settings { deduplicates: false, ..Settings::default() }).await;
    let client = provider.client;
    let mut refund = terms("1.00");
    refund["charge_id"] = client.charge("order-1", "1.00").await.json()["id"].clone();
    client.set(&json!({ "stall": "1ms" })).await;
    for mode in Mode::ALL.map(Mode::name) {
        let answer = client.try_post("/refunds", mode, &[("x-provider-mode", mode)], &refund).await;
        let (answered, effects) = match mode {
            "drop-after" => (None, 1),
            "drop-before" => (None, 0),
            "error-after" => (Some(500), 1),
            "reject" => (Some(503), 0),
            "decline" => (Some(402), 0),
            "stall-after" | "stall-before" => (Some(201), 1),
            other => panic!("{other} is not tested"),
        };
        assert_eq!(
            (answer.ok().map(|answer| answer.status), client.effects(mode).await),
            (answered, effects),
            "{mode}"
        );
    }
}
