//! Clients that go away.

use crate::support::{Ask, Front, KEY, Service};
use tokio::io::AsyncWriteExt as _;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_hangs_up_at_once_cancels_nothing() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for number in 0..50 {
        let ask = Ask::payment().key(&format!("key-hanging-up-{number:03}"));
        let mut client = front.connect().await;
        if number % 2 == 0 {
            // Resets the connection instead of closing it.
            client.stream.set_zero_linger().unwrap();
        }
        client.write(ask.bytes()).await;
        drop(client);
    }
    // A reset takes with it what was not read yet: of those requests, some never arrive. Those that were closed all do.
    service.has_executed(25).await;
    for number in (1..50).step_by(2) {
        let ask = Ask::payment().key(&format!("key-hanging-up-{number:03}"));
        let mut retry = front.send(&ask).await;
        while retry.status == 409 {
            assert_eq!(retry.code(), "idempotency_key_in_progress");
            retry = front.send(&ask).await;
        }
        assert_eq!((retry.status, retry.is_replay()), (201, true), "{number}");
    }
    front.engine.drained().await;
    for number in (0..50).step_by(2) {
        let retry = front.send(&Ask::payment().key(&format!("key-hanging-up-{number:03}"))).await;
        assert_eq!(retry.status, 201, "{number}");
    }
    assert_eq!(service.executed(), 50, "once each");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_only_stops_sending_gets_its_answer() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut client = front.connect().await;
    client.write(Ask::payment().field("X-Wait: go").bytes()).await;
    client.stream.shutdown().await.unwrap();
    service.has_executed(1).await;
    service.let_go("go");
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(client.rest().await, b"", "and the connection is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stops_half_way_is_not_executed() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let bytes = Ask::payment().bytes();
    let mut client = front.connect().await;
    client.write(&bytes[..bytes.len() - 1]).await;
    client.stream.shutdown().await.unwrap();
    client.rest().await;
    assert!(front.records().await.is_empty());
    assert_eq!(front.send(&Ask::payment()).await.json()["number"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unprotected_request_ends_with_its_client() {
    // A service that tells when its caller has gone.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = Service::stopped();
    service.port = listener.local_addr().unwrap().port();
    let front = Front::before(&service).await;
    for ask in [Ask::new("GET /"), Ask::new("GET /").key(KEY), Ask::new("PUT /").key(KEY).body("x")] {
        let mut client = front.connect().await;
        client.write(ask.bytes()).await;
        let mut called = crate::support::Client::of(listener.accept().await.unwrap().0);
        assert!(called.read_request().await);
        drop(client);
        assert_eq!(called.rest().await, b"", "its caller has gone");
    }
}
