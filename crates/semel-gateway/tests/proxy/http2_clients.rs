//! Clients that speak HTTP/2: the same promises, many requests on one connection.

use crate::support::frames::{
    ACK, CANCEL, END_HEADERS, END_STREAM, HEADERS, PING, frame, greeting, next_frame, reset,
};
use crate::support::http2::{Http2, payment, payment_with, whole};
use crate::support::{Ask, Front, Service, Setting};
use bytes::Bytes;
use h2::Reason;
use http::Request;
use semel::State;
use semel_gateway::Stopped;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_made_once_whichever_protocol_its_retry_comes_by() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let client = Http2::connect(front.address).await;
    let first = client.send(payment()).await;
    assert_eq!((first.status, first.is_replay()), (201, false));
    assert_eq!(first.told("host"), ["shop.example"]);
    assert_eq!(first.told("x-forwarded-proto"), ["http"]);
    let again = client.send(payment()).await;
    let ask = Ask::payment().field("Content-Type: application/json");
    let by_http1 = front.send(&ask).await;
    for retry in [&again, &by_http1] {
        assert_eq!((retry.status, retry.is_replay()), (201, true));
        assert_eq!(retry.body, first.body);
    }
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_share_a_connection() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let client = Http2::connect(front.address).await;
    let mut waiting = payment_with("key-that-waits-0123");
    waiting.headers_mut().insert("x-wait", "go".parse().unwrap());
    let (parts, body) = waiting.into_parts();
    let (answering, mut stream) = client.begin(Request::from_parts(parts, ()), false).await;
    stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
    service.has_executed(1).await;
    for number in 0..20 {
        let answer = client.send(payment_with(&format!("key-of-others-{number:04}"))).await;
        assert_eq!(answer.status, 201, "it waits for nobody else");
    }
    service.let_go("go");
    assert_eq!(whole(answering).await.0.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_resets_its_stream_cancels_nothing() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let client = Http2::connect(front.address).await;
    let ask = |key: &str| {
        let mut request = payment_with(key);
        request.headers_mut().insert("x-wait", "go".parse().unwrap());
        request
    };
    // One resets its stream, the other its connection.
    let other = Http2::connect(front.address).await;
    let mut streams = Vec::new();
    for (client, key) in [(&client, "key-of-a-reset-stream"), (&other, "key-of-a-lost-connection")] {
        let (parts, body) = ask(key).into_parts();
        let (answering, mut stream) = client.begin(Request::from_parts(parts, ()), false).await;
        stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
        streams.push((answering, stream));
    }
    service.has_executed(2).await;
    streams[0].1.send_reset(Reason::CANCEL);
    other.driver.abort();
    drop(streams);
    // The connection is still good, and what it asks next comes after the reset: the gateway has seen it.
    assert_eq!(client.send(payment_with("key-after-the-reset")).await.status, 201);
    service.let_go("go");
    front.engine.drained().await;
    let records = front.records().await;
    assert_eq!(records.len(), 3);
    assert!(records.iter().all(|record| record.state == State::Completed), "{records:?}");
    for key in ["key-of-a-reset-stream", "key-of-a-lost-connection"] {
        let retry = client.send(ask(key)).await;
        assert_eq!((retry.status, retry.is_replay()), (201, true));
    }
    assert_eq!(service.executed(), 3, "once each");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unprotected_request_ends_with_its_stream() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let front = Setting::default().before_port(listener.local_addr().unwrap().port()).await;
    let client = Http2::connect(front.address).await;
    let request = Request::get("http://shop.example/").body(()).unwrap();
    let (answering, mut stream) = client.begin(request, true).await;
    let mut called = crate::support::Client::of(listener.accept().await.unwrap().0);
    assert!(called.read_request().await);
    stream.send_reset(Reason::CANCEL);
    drop(answering);
    assert_eq!(called.rest().await, b"", "its caller has gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_stop_streams_end_and_none_begins() {
    let service = Service::start();
    let mut front = Front::before(&service).await;
    let (idle, busy) = (Http2::connect(front.address).await, Http2::connect(front.address).await);
    assert_eq!(idle.send(payment_with("key-of-an-idle-one")).await.status, 201);
    let mut request = payment();
    request.headers_mut().insert("x-wait", "go".parse().unwrap());
    let (parts, body) = request.into_parts();
    let (answering, mut stream) = busy.begin(Request::from_parts(parts, ()), false).await;
    stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
    service.has_executed(2).await;
    front.stop();
    // It is told to go, and goes.
    let _ended = tokio::time::timeout(Duration::from_secs(20), idle.driver).await.unwrap();
    // It is told that no stream begins any more.
    let deadline = Instant::now() + Duration::from_secs(20);
    while busy.sender.clone().ready().await.is_ok() {
        assert!(Instant::now() < deadline, "streams may still begin");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    service.let_go("go");
    assert_eq!(whole(answering).await.0.status, 201);
    assert_eq!(front.stopped().await, Stopped::Drained);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_too_slowly_is_not_executed() {
    let service = Service::start();
    let setting = Setting::default().limits(|limits| limits.body_timeout = Duration::from_millis(200));
    let front = setting.before(&service).await;
    let client = Http2::connect(front.address).await;
    let (parts, _) = payment().into_parts();
    let (answering, mut stream) = client.begin(Request::from_parts(parts, ()), false).await;
    stream.send_data(Bytes::from_static(b"{"), false).unwrap();
    assert_eq!(whole(answering).await.0.status, 408);
    assert!(front.records().await.is_empty());
    assert_eq!(service.executed(), 0);
    assert_eq!(client.send(payment()).await.status, 201, "the connection is still good");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_requests_is_closed() {
    let service = Service::start();
    let setting = Setting::default().limits(|limits| {
        (limits.header_timeout, limits.idle_timeout) =
            (Duration::from_millis(200), Duration::from_millis(300));
    });
    let front = setting.before(&service).await;
    let (silent, used) = (Http2::connect(front.address).await, Http2::connect(front.address).await);
    assert_eq!(used.send(payment()).await.status, 201);
    for client in [silent, used] {
        let _ended = tokio::time::timeout(Duration::from_secs(20), client.driver).await.unwrap();
    }
    // Half a greeting is no greeting.
    let mut stream = TcpStream::connect(front.address).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n").await.unwrap();
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await.unwrap().unwrap();
}

/// The next frame, in bounded time.
async fn arrives(stream: &mut TcpStream) -> (u8, u8, u32, Vec<u8>) {
    let frame = tokio::time::timeout(Duration::from_secs(20), next_frame(stream)).await.unwrap();
    frame.expect("the connection breaks off")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_on_its_way_when_an_idle_connection_closes_is_answered() {
    let service = Service::start();
    let setting = Setting::default().limits(|limits| limits.header_timeout = Duration::from_millis(300));
    let front = setting.before(&service).await;
    let mut client = TcpStream::connect(front.address).await.unwrap();
    client.write_all(&greeting()).await.unwrap();
    // It is told to go, and asked to say that it has heard so: what it began before that is served.
    let asked = loop {
        let (kind, flags, _, payload) = arrives(&mut client).await;
        if (kind, flags) == (PING, 0) {
            break payload;
        }
    };
    // GET http://a/, with `x-wait: go`.
    let head = [&[0x82, 0x86, 0x84, 0x41, 1, b'a', 0, 6][..], b"x-wait", &[2], b"go"].concat();
    let request = frame(HEADERS, END_HEADERS | END_STREAM, 1, &head);
    client.write_all(&[request, frame(PING, ACK, 0, &asked)].concat()).await.unwrap();
    service.has_executed(1).await;
    // Longer than a client is waited for that has asked for nothing.
    tokio::time::sleep(Duration::from_secs(3)).await;
    service.let_go("go");
    loop {
        let (_, flags, stream, _) = arrives(&mut client).await;
        if stream == 1 && flags & END_STREAM != 0 {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_taken_costs_the_connection() {
    let service = Service::start();
    let setting = Setting::default().limits(|limits| limits.body_timeout = Duration::from_millis(300));
    let front = setting.before(&service).await;
    let client = Http2::connect(front.address).await;
    let request =
        Request::get("http://shop.example/").header("x-length", "1000000").header("x-status", "200");
    let (answering, _stream) = client.begin(request.body(()).unwrap(), true).await;
    // The answer's window is never opened again.
    let answer = answering.await.unwrap();
    let _ended = tokio::time::timeout(Duration::from_secs(20), client.driver).await.unwrap();
    drop(answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_not_taken_costs_the_others_on_its_connection_nothing() {
    let service = Service::start();
    let setting = Setting::default().limits(|limits| limits.body_timeout = Duration::from_millis(300));
    let front = setting.before(&service).await;
    let client = Http2::connect(front.address).await;
    let mut waiting = payment();
    waiting.headers_mut().insert("x-wait", "go".parse().unwrap());
    // Without a body: the connection's window is used up by the answer that is not taken.
    waiting.headers_mut().insert("x-status", "204".parse().unwrap());
    let (parts, body) = waiting.into_parts();
    let (answering, mut stream) = client.begin(Request::from_parts(parts, ()), false).await;
    stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
    service.has_executed(1).await;
    let request =
        Request::get("http://shop.example/").header("x-length", "1000000").header("x-status", "200");
    let (large, _stream) = client.begin(request.body(()).unwrap(), true).await;
    let not_taken = large.await.unwrap();
    // It is told that no stream begins any more.
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.sender.clone().ready().await.is_ok() {
        assert!(Instant::now() < deadline, "streams may still begin");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    service.let_go("go");
    assert_eq!(answering.await.unwrap().status(), 204);
    let _ended = tokio::time::timeout(Duration::from_secs(20), client.driver).await.unwrap();
    drop(not_taken);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_answer_comes_whole_and_so_does_its_replay() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let client = Http2::connect(front.address).await;
    let mut request = payment();
    request.headers_mut().insert("x-length", "500000".parse().unwrap());
    let first = client.send(request.clone()).await;
    assert_eq!((first.status, first.body.len()), (201, 500_000));
    assert_eq!(first.header("content-length"), Some("500000"));
    let again = client.send(request).await;
    assert!(again.is_replay() && again.body == first.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_opened_and_reset_at_once_are_an_attack() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let mut attacker = TcpStream::connect(front.address).await.unwrap();
    let mut bytes = greeting();
    // GET http://a/
    let head = [0x82, 0x86, 0x84, 0x41, 1, b'a'];
    for stream in (1..2001).step_by(2) {
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, stream, &head));
        bytes.extend(reset(stream, CANCEL));
    }
    attacker.write_all(&bytes).await.unwrap();
    let mut rest = Vec::new();
    // Closed, or reset: it is over.
    let _ = tokio::time::timeout(Duration::from_secs(20), attacker.read_to_end(&mut rest)).await.unwrap();
    assert!(service.executed() < 1000, "and most of it was not looked at");
    assert_eq!(front.send(&Ask::payment()).await.status, 201, "others are served");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ambiguous_in_http_1_is_refused_in_http_2_too() {
    let service = Service::start();
    let front = Front::before(&service).await;
    let client = Http2::connect(front.address).await;
    let twice = Request::post("http://shop.example/payments")
        .header("content-length", "2")
        .header("content-length", "2")
        .body("hi")
        .unwrap();
    assert_eq!(client.send(twice).await.status, 400);
    let empty = Request::get("http://shop.example/").header("content-length", "").body("").unwrap();
    assert_eq!(client.send(empty).await.status, 400);
    let cookies = Request::get("http://shop.example/")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .body("")
        .unwrap();
    assert_eq!(client.send(cookies).await.told("cookie"), ["a=1; b=2"]);
    assert_eq!(service.executed(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_begins_like_http_2_is_guarded_like_http_1() {
    let service = Service::start();
    let front = Front::before(&service).await;
    for bytes in [
        &b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"[..],
        b"PRI * HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        b"P\nOST / HTTP/1.1\r\n\r\n",
    ] {
        let mut client = front.connect().await;
        client.write(bytes).await;
        assert_eq!(client.head().await.status, 400, "{:?}", String::from_utf8_lossy(bytes));
    }
    // Where a request is cut does not matter.
    let mut client = front.connect().await;
    for byte in Ask::payment().bytes() {
        client.write([byte]).await;
    }
    assert_eq!(client.answer().await.status, 201);
    assert_eq!(service.executed(), 1);
}
