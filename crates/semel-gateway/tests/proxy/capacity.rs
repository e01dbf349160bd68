//! Capacity is shared: whatever one client holds, others are served. Clients are told apart by the address that a trusted peer, which every test
//! is, forwards; or by addresses of this machine, where nobody is trusted.

use crate::support::http2::{Http2, payment_with};
use crate::support::{Ask, Client, Front, KEY, Service, Setting};
use bytes::Bytes;
use http::Request;
use semel::State;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(20);
/// Longer than a test waits for anything: what happens sooner does not happen because of it.
const NEVER: Duration = Duration::from_secs(600);
/// Long enough for a busy machine to move some bytes.
const SHORT: Duration = Duration::from_millis(400);

const GREEDY: &str = "203.0.113.1";
const OTHER: &str = "203.0.113.2";

fn forwarded(ask: Ask, client: &str) -> Ask {
    ask.field(&format!("X-Forwarded-For: {client}"))
}

async fn with_places(service: &Service, places: usize) -> Front {
    let setting = Setting::default().limits(|limits| {
        limits.requests_in_flight = places;
        limits.body_timeout = NEVER;
        limits.header_timeout = NEVER;
    });
    setting.before(service).await
}

/// The greedy client, who is alone, holds everything.
async fn is_full(front: &Front) {
    assert_eq!(front.send(&forwarded(Ask::new("GET /"), GREEDY)).await.status, 503);
}

/// Asks until the answer is another than that there is no room yet.
async fn is_served(front: &Front, ask: &Ask) -> u16 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = front.send(ask).await;
        if answer.status != 503 || Instant::now() > deadline {
            return answer.status;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Connections whose requests have a body that does not come.
async fn dribbling(front: &Front, ask: impl Fn(usize) -> Ask, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for number in 0..count {
        let mut client = front.connect().await;
        let ask = ask(number).body([b'x'; 1000]).field("Expect: 100-continue");
        client.write(forwarded(ask, GREEDY).head()).await;
        assert_eq!(client.head().await.status, 100, "it is let in, and its body is waited for");
        client.write("x").await;
        clients.push(client);
    }
    clients
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_do_not_come_make_room_for_other_clients() {
    let service = Service::start();
    let front = with_places(&service, 8).await;
    let mut dribbling = dribbling(&front, |_| Ask::new("PUT /files"), 8).await;
    is_full(&front).await;
    // One who asks within its share is served at once, several times.
    for _ in 0..3 {
        assert_eq!(front.send(&forwarded(Ask::new("GET /"), OTHER)).await.status, 201);
    }
    // The oldest made room, and was told so.
    let answer = dribbling[0].answer().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert_eq!((answer.code().as_str(), &answer.json()["retryable"]), ("", &true.into()));
    assert_eq!(answer.header("connection"), Some("close"));
    // While others are there, the greedy client gets no more than its share.
    let answer = front.send(&forwarded(Ask::new("GET /"), GREEDY)).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    // What it still holds is as good as ever.
    let last = dribbling.last_mut().unwrap();
    last.write([b'x'; 999]).await;
    assert_eq!(last.answer().await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_whose_bodies_do_not_come_make_room_for_other_clients() {
    let service = Service::start();
    let front = with_places(&service, 8).await;
    let client = Http2::connect(front.address).await;
    let mut begun = Vec::new();
    for _ in 0..8 {
        let request = Request::put("http://shop.example/files").header("x-forwarded-for", GREEDY);
        let (answering, mut stream) = client.begin(request.body(()).unwrap(), false).await;
        stream.send_data(Bytes::from_static(b"x"), false).unwrap();
        begun.push((answering, stream));
    }
    service.has_executed(8).await;
    is_full(&front).await;
    assert_eq!(front.send(&forwarded(Ask::new("GET /"), OTHER)).await.status, 201);
    // One of them made room. Which one came first, nobody knows: streams go to all threads.
    let (answers, _streams): (Vec<_>, Vec<_>) = begun.into_iter().unzip();
    let mut answers: JoinSet<_> = answers.into_iter().collect();
    let answer = tokio::time::timeout(PATIENCE, answers.join_next()).await.unwrap().unwrap();
    assert_eq!(answer.unwrap().unwrap().status(), 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protected_request_that_makes_room_was_not_executed() {
    let service = Service::start();
    let front = with_places(&service, 4).await;
    let ask = |number: usize| Ask::payment().key(&format!("{KEY}-{number}"));
    let mut dribbling = dribbling(&front, ask, 4).await;
    is_full(&front).await;
    let before = service.executed();
    let other = forwarded(Ask::payment().key("key-of-the-other-client"), OTHER);
    assert_eq!(front.send(&other).await.status, 201);
    assert_eq!(dribbling[0].answer().await.status, 429);
    assert_eq!((service.executed() - before, front.records().await.len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_begun_to_execute_is_never_given_up() {
    let service = Service::start();
    let front = with_places(&service, 4).await;
    let mut working = Vec::new();
    for number in 0..4 {
        let mut client = front.connect().await;
        let ask = Ask::payment().key(&format!("{KEY}-{number}")).field(&format!("X-Wait: go-{number}"));
        client.write(forwarded(ask, GREEDY).bytes()).await;
        working.push(client);
    }
    service.has_executed(4).await;
    let other = forwarded(Ask::new("GET /"), OTHER);
    let answer = front.send(&other).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
    // The first place that is returned is for whoever waits, not for whoever has most.
    service.let_go("go-0");
    assert_eq!(working[0].answer().await.status, 201);
    assert_eq!(front.send(&forwarded(Ask::new("GET /"), GREEDY)).await.status, 429);
    assert_eq!(is_served(&front, &other).await, 201);
    for (number, client) in working.iter_mut().enumerate().skip(1) {
        service.let_go(&format!("go-{number}"));
        assert_eq!(client.answer().await.status, 201);
    }
    front.engine.drained().await;
    assert!(front.records().await.iter().all(|record| record.state == State::Completed));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_not_taken_make_room_for_other_clients() {
    let service = Service::start();
    let front = with_places(&service, 4).await;
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let mut client = front.connect().await;
        client.write(forwarded(Ask::new("GET /").field("X-Length: 50000000"), GREEDY).bytes()).await;
        stalled.push(client);
    }
    service.has_executed(4).await;
    is_full(&front).await;
    assert_eq!(is_served(&front, &forwarded(Ask::new("GET /"), OTHER)).await, 201);
    drop(stalled);
}

/// A client whose window for answers is closed.
async fn without_a_window(address: SocketAddr) -> Http2 {
    let stream = TcpStream::connect(address).await.unwrap();
    let handshake = h2::client::Builder::new().initial_window_size(0).handshake(stream).await;
    let (sender, connection) = handshake.unwrap();
    Http2 { sender, driver: tokio::spawn(connection) }
}

#[tokio::test(flavor = "multi_thread")]
async fn small_answers_that_are_not_taken_count_and_make_room_for_other_clients() {
    let service = Service::start();
    let front = with_places(&service, 4).await;
    let greedy = without_a_window(front.address).await;
    let mut answers = Vec::new();
    for number in 0..4 {
        let (mut parts, body) = payment_with(&format!("{KEY}-{number}")).into_parts();
        parts.headers.insert("x-forwarded-for", GREEDY.parse().unwrap());
        let (answering, mut stream) = greedy.begin(Request::from_parts(parts, ()), false).await;
        stream.send_data(Bytes::from_static(body.as_bytes()), true).unwrap();
        answers.push(tokio::time::timeout(PATIENCE, answering).await.unwrap().unwrap());
    }
    assert!(answers.iter().all(|answer| answer.status() == 201), "they are executed, and answered");
    assert_eq!(front.send(&forwarded(Ask::new("GET /"), GREEDY)).await.status, 503, "they wait in memory");
    assert_eq!(is_served(&front, &forwarded(Ask::new("GET /"), OTHER)).await, 201);
    // The library cannot end a single stream: the connection ends, without a new stream.
    let _ended = tokio::time::timeout(PATIENCE, greedy.driver).await.unwrap();
    let retry = front
        .send(&forwarded(
            Ask::payment().key(&format!("{KEY}-0")).field("Content-Type: application/json"),
            OTHER,
        ))
        .await;
    assert!(retry.is_replay(), "nothing is lost: {retry:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_passed_on_has_to_come_fast_enough_and_to_end() {
    let service = Service::start();
    let slow = Setting::default().limits(|limits| {
        limits.body_timeout = SHORT;
        limits.min_body_rate = 1 << 20;
    });
    let long = Setting::default().limits(|limits| {
        limits.body_timeout = NEVER;
        limits.min_body_rate = 1;
        limits.pass_through_timeout = SHORT;
    });
    for setting in [slow, long] {
        let front = setting.before(&service).await;
        let ask = Ask::new("PUT /files").body([b'x'; 100_000]);
        let mut client = front.connect().await;
        client.write(ask.head()).await;
        // It never pauses for long, and never ends.
        let answer = loop {
            tokio::select! {
                answer = client.answer() => break answer,
                () = tokio::time::sleep(SHORT / 40) => {}
            }
            client.write("x").await;
        };
        assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
        let http2 = Http2::connect(front.address).await;
        let request = Request::put("http://shop.example/files").body(()).unwrap();
        let (mut answering, mut stream) = http2.begin(request, false).await;
        let deadline = Instant::now() + PATIENCE;
        let answer = loop {
            tokio::select! {
                answer = &mut answering => break answer.unwrap(),
                () = tokio::time::sleep(SHORT / 40) => assert!(Instant::now() < deadline),
            }
            let _ended = stream.send_data(Bytes::from_static(b"x"), false);
        };
        assert_eq!(answer.status(), 408);
    }
}

/// A connection from another address of this machine.
async fn connect_from(last: u8, front: &Front) -> Client {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0)).unwrap();
    Client::of(socket.connect(front.address).await.unwrap())
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_make_room_for_other_clients_and_those_at_work_do_not() {
    let service = Service::start();
    let mut setting = Setting::default().limits(|limits| {
        limits.connections = 4;
        limits.header_timeout = NEVER;
        limits.idle_timeout = NEVER;
    });
    setting.trusts_loopback = false;
    let front = setting.before(&service).await;
    let mut working = connect_from(2, &front).await;
    working.write(Ask::payment().field("X-Wait: go").bytes()).await;
    service.has_executed(1).await;
    let mut idle = connect_from(2, &front).await;
    assert_eq!(idle.send(&Ask::new("GET /")).await.status, 201);
    let (mut half, mut silent) = (connect_from(2, &front).await, connect_from(2, &front).await);
    half.write("GET / HT").await;
    // All are held, and one more of the same client waits.
    let mut waits = connect_from(2, &front).await;
    waits.write(Ask::new("GET /").bytes()).await;
    let mut other = connect_from(3, &front).await;
    assert_eq!(other.send(&Ask::new("GET /")).await.status, 201);
    assert_eq!(idle.rest().await, b"", "the oldest that is not at work");
    let mut another = connect_from(3, &front).await;
    assert_eq!(another.send(&Ask::new("GET /")).await.status, 201);
    assert_eq!(half.rest().await, b"");
    // Each holds its share now: whoever waits goes on waiting.
    let before = service.executed();
    assert_eq!(other.send(&Ask::new("GET /")).await.status, 201);
    assert_eq!(service.executed() - before, 1);
    drop(another);
    drop(other);
    assert_eq!(waits.answer().await.status, 201);
    service.let_go("go");
    assert_eq!(working.answer().await.status, 201);
    silent.write(Ask::new("GET /").bytes()).await;
    assert_eq!(silent.answer().await.status, 201);
}
