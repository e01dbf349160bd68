//! Sending ends with the right to execute.
//!
//! The story: a service reads slowly, so that a request is half sent when its time is over. The outcome is unknown, an operator finds that
//! nothing was executed and says so, and the next attempt executes. Then the service reads on. If the gateway finished the first request
//! now, the service would carry it out too.

use crate::support::frames::{ACK, DATA, END_STREAM, HEADERS, PING, RST_STREAM, frame, next_frame};
use crate::support::{Ask, Front, Setting};
use semel::transition::{About, Evidence, Settlement, Windows};
use semel::{Actor, Owner, Policy, Settled, State};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc};

/// More than the system keeps of what nobody reads.
pub(crate) const MORE_THAN_FITS: usize = 12 << 20;
/// More than the service's side of a connection keeps, and less than ours: all of it is taken by the system, and none of it is at the service.
const FITS_ON_OUR_SIDE: usize = 256 << 10;

/// What the service made of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    /// A whole request: it is carried out.
    Executed,
    /// It broke off.
    BrokenOff,
}

/// A service whose first connection reads the head of a request, and no more until it may.
pub(crate) struct SlowReader {
    pub(crate) port: u16,
    may_read: Arc<Semaphore>,
    seen: mpsc::UnboundedReceiver<(usize, Seen)>,
    heads: mpsc::UnboundedReceiver<usize>,
    effects: Arc<AtomicUsize>,
}

impl SlowReader {
    pub(crate) async fn start() -> Self {
        let listener = listener();
        let port = listener.local_addr().unwrap().port();
        let (may_read, effects) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let ((tell, seen), (tell_head, heads)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let (waits, counted) = (Arc::clone(&may_read), Arc::clone(&effects));
        tokio::spawn(async move {
            for number in 1.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (tell, tell_head) = (tell.clone(), tell_head.clone());
                let (waits, counted) = ((number == 1).then(|| Arc::clone(&waits)), Arc::clone(&counted));
                tokio::spawn(async move {
                    let seen = read_request(stream, waits, number, &tell_head, &counted).await;
                    let _ = tell.send((number, seen));
                });
            }
        });
        Self { port, may_read, seen, heads, effects }
    }

    async fn next(&mut self) -> (usize, Seen) {
        tokio::time::timeout(Duration::from_secs(30), self.seen.recv()).await.unwrap().unwrap()
    }
}

/// Keeps little of what comes.
fn listener() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 << 10).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(16).unwrap()
}

async fn read_request(
    mut stream: TcpStream,
    waits: Option<Arc<Semaphore>>,
    number: usize,
    heads: &mpsc::UnboundedSender<usize>,
    effects: &AtomicUsize,
) -> Seen {
    let mut read = Vec::new();
    let end = loop {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return Seen::BrokenOff;
        }
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
    let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.expect("the layer has read all of it").parse().unwrap();
    heads.send(number).unwrap();
    if let Some(waits) = waits {
        waits.acquire().await.unwrap().forget();
    }
    while read.len() < end + length {
        match stream.read_buf(&mut read).await {
            Ok(0) | Err(_) => return Seen::BrokenOff,
            Ok(_) => {}
        }
    }
    effects.fetch_add(1, SeqCst);
    let _ = stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\ndone").await;
    Seen::Executed
}

pub(crate) fn setting() -> Setting {
    let setting = Setting::default().timeout(Duration::from_millis(1500));
    setting.protection(|protection| protection.max_request_body = 2 * MORE_THAN_FITS)
}

/// An operator who looked, and found nothing.
async fn not_executed(front: &Front) {
    let record = front.record().await;
    assert_eq!((record.state, record.attempt), (State::Unknown, 1));
    assert_eq!(record.last_error.as_deref(), Some("timeout"));
    let settlement = Settlement {
        settler: Owner::random(),
        actor: Actor::Operator("ada".into()),
        evidence: Evidence::NotExecuted,
        note: None,
        windows: Windows::from(&Policy::default()),
    };
    let settled = front.engine.settle(&About::of(&record), &settlement).await.unwrap();
    assert!(matches!(settled, Settled::Done(_)), "{settled:?}");
}

async fn is_broken_off(request: Vec<u8>) {
    let service = SlowReader::start().await;
    let front = setting().before_port(service.port).await;
    is_broken_off_by(&front, service, request).await;
}

/// By this gateway, in front of that service.
pub(crate) async fn is_broken_off_by(front: &Front, mut service: SlowReader, request: Vec<u8>) {
    let send = async || {
        let mut client = front.connect().await;
        client.write(&request).await;
        client.answer().await
    };
    let first = send().await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    assert_eq!(service.heads.recv().await, Some(1), "it was sent in part");
    not_executed(front).await;
    let second = send().await;
    assert_eq!((second.status, second.body.as_slice()), (201, &b"done"[..]));
    assert_eq!(service.next().await, (2, Seen::Executed));
    // The service reads on.
    service.may_read.add_permits(1);
    assert_eq!(service.next().await, (1, Seen::BrokenOff));
    assert_eq!(service.effects.load(SeqCst), 1);
    assert_eq!(front.record().await.state, State::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_half_sent_when_its_time_is_over_is_never_finished() {
    is_broken_off(Ask::payment().body(vec![b'x'; MORE_THAN_FITS]).bytes()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_came_in_chunks_is_never_finished_either() {
    let mut request = Ask::payment().body("").field("Transfer-Encoding: chunked").bytes();
    for _ in 0..MORE_THAN_FITS >> 20 {
        request.extend(b"100000\r\n");
        request.extend(vec![b'x'; 1 << 20]);
        request.extend(b"\r\n");
    }
    request.extend(b"0\r\n\r\n");
    is_broken_off(request).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_system_took_and_the_service_did_not_is_taken_back() {
    is_broken_off(Ask::payment().body(vec![b'x'; FITS_ON_OUR_SIDE]).bytes()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_whole_at_the_service_goes_on_and_its_late_outcome_counts() {
    let mut service = SlowReader::start().await;
    let front = setting().before_port(service.port).await;
    let first = front.send(&Ask::payment()).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    assert_eq!(front.record().await.state, State::Unknown);
    service.may_read.add_permits(1);
    assert_eq!(service.next().await, (1, Seen::Executed));
    front.engine.drained().await;
    let retry = front.send(&Ask::payment()).await;
    assert_eq!((retry.status, retry.is_replay(), retry.body.as_slice()), (201, true, &b"done"[..]));
    assert_eq!(service.effects.load(SeqCst), 1);
}

/// HTTP/2, the service gives little room: the stream stalls, and the connection does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_half_sent_when_its_time_is_over_is_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let effects = Arc::new(AtomicUsize::new(0));
    let (may_read, counted) = (Arc::new(Semaphore::new(0)), Arc::clone(&effects));
    let (tell, mut seen) = mpsc::unbounded_channel();
    let waits = Arc::clone(&may_read);
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let handshake = h2::server::Builder::new().initial_window_size(10_000).handshake(stream);
        let mut connection: h2::server::Connection<_, bytes::Bytes> = handshake.await.unwrap();
        let mut number = 0;
        while let Some(Ok((request, mut answer))) = connection.accept().await {
            number += 1;
            let (tell, counted) = (tell.clone(), Arc::clone(&counted));
            let waits = (number == 1).then(|| Arc::clone(&waits));
            tokio::spawn(async move {
                if let Some(waits) = waits {
                    waits.acquire().await.unwrap().forget();
                }
                let mut body = request.into_body();
                while let Some(piece) = body.data().await {
                    let Ok(piece) = piece else {
                        let _ = tell.send((number, Seen::BrokenOff));
                        return;
                    };
                    let _ = body.flow_control().release_capacity(piece.len());
                }
                counted.fetch_add(1, SeqCst);
                let _ = answer.send_response(http::Response::new(()), true);
                let _ = tell.send((number, Seen::Executed));
            });
        }
    });
    let front = setting().http2().before_port(port).await;
    let ask = Ask::payment().body(vec![b'x'; 1 << 20]);
    let first = front.send(&ask).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    not_executed(&front).await;
    assert_eq!(front.send(&ask).await.status, 200);
    assert_eq!(seen.recv().await, Some((2, Seen::Executed)));
    may_read.add_permits(1);
    assert_eq!(seen.recv().await, Some((1, Seen::BrokenOff)));
    assert_eq!(effects.load(SeqCst), 1);
    serving.abort();
}

/// HTTP/2, the service gives room for all of it and does not read: the connection stalls, with the end of the request on our side of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_stream_does_not_wait_in_a_queue() {
    let listener = listener();
    let port = listener.local_addr().unwrap().port();
    let (may_read, effects) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
    let (waits, counted) = (Arc::clone(&may_read), Arc::clone(&effects));
    let (tell, mut seen) = mpsc::unbounded_channel();
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 24]).await.unwrap();
        // As much room as there can be, on every stream and on the connection.
        let most = (u32::MAX >> 1) - 65_535;
        let window = [&4_u16.to_be_bytes()[..], &most.to_be_bytes()].concat();
        let room = [frame(4, 0, 0, &window), frame(8, 0, 0, &most.to_be_bytes())].concat();
        stream.write_all(&room).await.unwrap();
        while let Some((kind, flags, id, payload)) = next_frame(&mut stream).await {
            match kind {
                PING if flags & ACK == 0 => {
                    stream.write_all(&frame(PING, ACK, 0, &payload)).await.unwrap();
                }
                HEADERS if id == 1 => waits.acquire().await.unwrap().forget(),
                DATA if flags & END_STREAM != 0 => {
                    counted.fetch_add(1, SeqCst);
                    tell.send((id, Seen::Executed)).unwrap();
                    let answer = frame(HEADERS, 5, id, crate::support::frames::OK);
                    stream.write_all(&answer).await.unwrap();
                }
                RST_STREAM => tell.send((id, Seen::BrokenOff)).unwrap(),
                _ => {}
            }
        }
    });
    let front = setting().http2().before_port(port).await;
    let ask = Ask::payment().body(vec![b'x'; MORE_THAN_FITS]);
    let first = front.send(&ask).await;
    assert_eq!((first.status, first.code().as_str()), (504, "idempotency_outcome_unknown"));
    not_executed(&front).await;
    // The connection takes nothing more: what is not sent is known not to be.
    let stuck = front.send(&ask).await;
    assert_eq!((stuck.status, stuck.code().as_str()), (502, "idempotency_upstream_unreachable"));
    may_read.add_permits(1);
    assert_eq!(seen.recv().await, Some((1, Seen::BrokenOff)), "and not executed before that");
    assert_eq!(front.send(&ask).await.status, 200);
    assert_eq!(seen.recv().await.map(|(_, seen)| seen), Some(Seen::Executed));
    assert_eq!(effects.load(SeqCst), 1);
    serving.abort();
}

/// Whoever is still connecting when the time is over has sent nothing, and that is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_found_no_connection_in_time_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    // It takes every connection and says nothing on it: HTTP/2 does not get past its first ping.
    let serving = tokio::spawn(async move {
        let mut silent = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            silent.push(stream);
        }
    });
    let slow_to_connect = setting().limits(|limits| limits.connect_timeout = Duration::from_secs(60));
    let front = slow_to_connect.http2().before_port(port).await;
    for attempt in 1..=2 {
        let answer = front.send(&Ask::payment()).await;
        assert_eq!((answer.status, answer.code().as_str()), (502, "idempotency_upstream_unreachable"));
        let record = front.record().await;
        assert_eq!((record.state, record.attempt), (State::FailedRetryable, attempt));
    }
    serving.abort();
}
