//! What the gateway puts up with.

use crate::support::{Ask, Front, KEY, Service, Setting};
use semel_gateway::Limits;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;

/// Short, but far longer than anything takes that does not wait for it.
const SHORT: Duration = Duration::from_millis(400);
/// Longer than a test waits for an answer.
const NEVER: Duration = Duration::from_secs(600);

async fn with(service: &Service, change: impl FnOnce(&mut Limits)) -> Front {
    Setting::default().limits(change).before(service).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_has_a_largest_size() {
    let service = Service::start();
    let front = with(&service, |limits| limits.header_bytes = 10_000).await;
    let padded = |size: usize| {
        let ask = Ask::new("GET /").field("X-Status: 200");
        let rest = size - ask.head().len() - "X-Pad: \r\n".len();
        ask.field(&format!("X-Pad: {}", "x".repeat(rest)))
    };
    assert_eq!(front.send(&padded(9_999)).await.status, 200);
    for size in [10_001, 200_000] {
        let mut client = front.connect().await;
        let _ = client.stream.write_all(&padded(size).bytes()).await;
        assert_eq!(client.answer().await.status, 431, "{size}");
        assert_eq!(client.rest().await, b"");
    }
    let many = (0..200).fold(Ask::new("GET /"), |ask, number| ask.field(&format!("X-{number}: 1")));
    assert_eq!(front.send(&many).await.status, 431);
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_must_come_in_time() {
    let service = Service::start();
    let front = with(&service, |limits| {
        limits.header_timeout = SHORT;
        limits.idle_timeout = NEVER;
    })
    .await;
    // Nothing at all, and drop by drop: from the beginning of the connection.
    let mut client = front.connect().await;
    assert_eq!(client.rest().await, b"");
    let mut client = front.connect().await;
    for drop in b"GET /".iter().cycle() {
        if client.stream.write_all(&[*drop]).await.is_err() {
            break;
        }
        tokio::time::sleep(SHORT / 20).await;
    }
    assert_eq!(client.rest().await, b"");
    // A second head has its own time, and no deadline runs between requests.
    let mut client = front.connect().await;
    assert_eq!(client.send(&Ask::new("GET /")).await.status, 201);
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(client.send(&Ask::new("GET /")).await.status, 201);
    client.write("GET /").await;
    assert_eq!(client.rest().await, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_request_must_come_in_time() {
    let service = Service::start();
    let front = with(&service, |limits| {
        limits.header_timeout = NEVER;
        limits.idle_timeout = SHORT;
    })
    .await;
    // An answer that takes its time is not idleness, nor is one whose middle does.
    let mut client = front.connect().await;
    client.write(Ask::new("GET /").field("X-Wait: later").bytes()).await;
    tokio::time::sleep(2 * SHORT).await;
    service.let_go("later");
    assert_eq!(client.answer().await.status, 201);
    let mut client = front.connect().await;
    client.write(Ask::new("GET /").field("X-Kind: chunked").field("X-Wait-Between: more").bytes()).await;
    tokio::time::sleep(2 * SHORT).await;
    service.let_go("more");
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(client.rest().await, b"", "now it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_body_that_comes_too_slowly_is_refused_and_nothing_executes() {
    let service = Service::start();
    let front = with(&service, |limits| limits.body_timeout = SHORT).await;
    let ask = Ask::payment().body([b'x'; 100_000]);
    let mut client = front.connect().await;
    client.write(ask.head()).await;
    // Progress does not help: it is the whole that counts.
    let answer = loop {
        tokio::select! {
            answer = client.answer() => break answer,
            () = tokio::time::sleep(SHORT / 20) => {}
        }
        client.write("x").await;
    };
    assert_eq!(answer.status, 408);
    assert_eq!((answer.code().as_str(), answer.header("connection")), ("", Some("close")));
    assert!(front.records().await.is_empty());
    assert_eq!(service.executed(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_body_may_take_its_time_but_not_pause_too_long() {
    let service = Service::start();
    let front = with(&service, |limits| {
        limits.body_timeout = 3 * SHORT;
        limits.min_body_rate = 1;
    })
    .await;
    let ask = Ask::new("PUT /").key(KEY).body([b'x'; 60]);
    let mut client = front.connect().await;
    client.write(ask.head()).await;
    let start = Instant::now();
    for byte in [b'x'; 60] {
        tokio::time::sleep(SHORT / 15).await;
        client.write([byte]).await;
    }
    assert!(start.elapsed() > 3 * SHORT);
    assert_eq!(client.answer().await.status, 201);
    client.write(ask.head()).await;
    assert_eq!(client.answer().await.status, 408);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_take_its_answer_is_let_go() {
    let service = Service::start();
    let front = with(&service, |limits| {
        limits.body_timeout = SHORT;
        limits.connections = 1;
    })
    .await;
    let mut greedy = front.connect().await;
    greedy.write(Ask::new("GET /").field("X-Length: 50000000").bytes()).await;
    // The only connection that there may be is taken until then.
    assert_eq!(front.send(&Ask::new("GET /")).await.status, 201);
    drop(greedy);
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_most_connections_new_ones_wait() {
    let service = Service::start();
    let front = with(&service, |limits| limits.connections = 2).await;
    let (mut one, mut two) = (front.connect().await, front.connect().await);
    assert_eq!(one.send(&Ask::new("GET /1")).await.status, 201);
    assert_eq!(two.send(&Ask::new("GET /2")).await.status, 201);
    let mut three = front.connect().await;
    three.write(Ask::new("GET /3").bytes()).await;
    assert_eq!(one.send(&Ask::new("GET /1")).await.status, 201);
    assert_eq!(service.executed(), 3, "the third waits");
    drop(two);
    assert_eq!(three.answer().await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn past_the_most_requests_under_way_the_answer_is_503() {
    let service = Service::start();
    let front = with(&service, |limits| limits.requests_in_flight = 2).await;
    let mut passing = front.connect().await;
    passing.write(Ask::new("GET /").field("X-Wait: go").bytes()).await;
    let mut gone = front.connect().await;
    gone.write(Ask::payment().field("X-Wait: go").bytes()).await;
    service.has_executed(2).await;
    // Work whose client has gone is still work.
    drop(gone);
    for ask in [Ask::new("GET /"), Ask::payment().key("key-of-another-one")] {
        let mut client = front.connect().await;
        for _ in 0..2 {
            let answer = client.send(&ask).await;
            assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
            assert_eq!((answer.code().as_str(), &answer.json()["retryable"]), ("", &true.into()));
        }
    }
    service.let_go("go");
    assert_eq!(passing.answer().await.status, 201);
    front.engine.drained().await;
    assert_eq!(front.send(&Ask::payment().key("key-of-another-one")).await.status, 201);
    assert_eq!(service.executed(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_under_way_until_its_answer_has_passed() {
    let service = Service::start();
    let front = with(&service, |limits| limits.requests_in_flight = 1).await;
    let mut streaming = front.connect().await;
    streaming.write(Ask::new("GET /").field("X-Kind: chunked").field("X-Wait-Between: go").bytes()).await;
    streaming.head().await;
    assert!(streaming.chunk().await.is_some());
    assert_eq!(front.send(&Ask::new("GET /")).await.status, 503);
    service.let_go("go");
    while streaming.chunk().await.is_some() {}
    assert_eq!(front.send(&Ask::new("GET /")).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_passed_on_has_a_largest_size_if_told_so() {
    let service = Service::start();
    let front = with(&service, |limits| limits.pass_through_body = Some(1_000_000)).await;
    assert_eq!(front.send(&Ask::new("PUT /").body("x".repeat(1_000_000))).await.status, 201);
    let mut client = front.connect().await;
    let too_long = Ask::new("PUT /").body("x".repeat(1_000_001));
    client.write(too_long.bytes()).await;
    assert_eq!(client.answer().await.status, 413, "by its announced length");
    let mut client = front.connect().await;
    let chunk = format!("186a0\r\n{}\r\n", "x".repeat(100_000));
    let head = Ask::new("PUT /").field("Transfer-Encoding: chunked").head();
    client.write(format!("{head}{}0\r\n\r\n", chunk.repeat(11))).await;
    assert_eq!(client.answer().await.status, 413, "as it comes");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_arrives_though_the_body_is_not_read() {
    let service = Service::start();
    let front =
        Setting::default().protection(|protection| protection.max_request_body = 10).before(&service).await;
    for _ in 0..5 {
        // Refused while megabytes are still on their way: closing at once would reset the connection and lose the answer.
        let mut client = front.connect().await;
        let large = Ask::payment().body("x".repeat(3_000_000));
        client.write(large.bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.code().as_str()), (413, "idempotency_request_too_large"));
        assert_eq!(client.rest().await, b"", "and closed");
    }
    assert_eq!(service.executed(), 0);
}
