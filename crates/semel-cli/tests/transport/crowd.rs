//! Thousands of clients that only hold their connections, while another one wants something; and hundreds that want something at once.

use crate::support::{Gateway, Service, gateway};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SILENT: usize = 9_000;
const SLOW_HEADS: usize = 500;
const SLOW_BODIES: usize = 500;
const SILENT_HTTP2: usize = 500;
const ALL: usize = SILENT + SLOW_HEADS + SLOW_BODIES + SILENT_HTTP2;

/// After so many, somebody is answered: those before are accepted then, and the system's queue has room for the next.
const QUEUE: usize = 100;

/// In MiB.
const MOST_MEMORY: u64 = 300;

/// They would be closed one after the other, and this is about what they cost until then.
const SETTINGS: &str = "[limits]
connections = 15000
header_timeout = \"10m\"
body_timeout = \"10m\"
";

const GREETING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
const HALF_A_HEAD: &[u8] = b"POST /payments HTTP/1.1\r\nHost: a\r\nX-Slow: ";
const HALF_A_BODY: &[u8] = b"POST /payments HTTP/1.1\r\nHost: a\r\nIdempotency-Key: key-of-a-slow-one-0123\r\nContent-Length: 1000\r\n\r\n{\"amount\":";

fn raise_limit_of_open_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    assert!(
        maximum.is_none_or(|most| most > ALL as u64 + 1000),
        "this test opens {ALL} connections: allow more open files (ulimit -n)"
    );
}

fn pay(gateway: &Gateway, number: usize) -> Duration {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(gateway.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "POST /payments HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: key-of-another-{number:04}\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    begun.elapsed()
}

#[test]
fn a_crowd_that_holds_connections_stops_nobody() {
    raise_limit_of_open_files();
    let service = Service::start();
    let gateway = gateway(&service, SETTINGS);
    let begun = Instant::now();
    let (mut crowd, mut times) = (Vec::with_capacity(ALL), Vec::new());
    let says = [&b""[..], GREETING, HALF_A_HEAD, HALF_A_BODY];
    for (count, says) in [SILENT, SILENT_HTTP2, SLOW_HEADS, SLOW_BODIES].into_iter().zip(says) {
        for _ in 0..count {
            let mut stream = TcpStream::connect(gateway.address).unwrap();
            stream.write_all(says).unwrap();
            crowd.push(stream);
            if crowd.len() % QUEUE == 0 {
                times.push(pay(&gateway, times.len()));
            }
        }
    }
    // The slow ones say a little more, as those do that want to stay.
    for stream in crowd.iter_mut().skip(SILENT + SILENT_HTTP2) {
        stream.write_all(b"x").unwrap();
    }
    for _ in 0..50 {
        times.push(pay(&gateway, times.len()));
    }
    let (slowest, resident) = (times.iter().max().unwrap(), gateway.resident());
    println!(
        "{ALL} connections in {:?}, others answered within {slowest:?}, {resident} MiB resident",
        begun.elapsed()
    );
    assert!(resident < MOST_MEMORY, "{resident} MiB");
    assert_eq!(service.executed(), times.len(), "the slow ones have asked for nothing yet");
    // They are all still there: whoever holds a connection held it.
    for stream in &crowd {
        stream.set_nonblocking(true).unwrap();
        let mut byte = [0];
        let read = (&*stream).read(&mut byte);
        assert!(!matches!(read, Ok(0)), "a connection was closed");
    }
}

/// Asks for `/slow` on each of these connections at once.
fn all_at_once(crowd: &mut [TcpStream], service: &Service) {
    for stream in &mut *crowd {
        stream.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    service.has_slow_ones(crowd.len());
    service.let_go(crowd.len());
    for stream in crowd {
        let (mut answer, mut piece) = (Vec::new(), [0; 1024]);
        while !answer.ends_with(b"{\"id\":\"p_1\"}\n") {
            let length = stream.read(&mut piece).unwrap();
            assert_ne!(length, 0, "{}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&piece[..length]);
        }
    }
}

#[test]
fn a_crowd_that_comes_back_finds_its_connections_to_the_service() {
    const CROWD: usize = 300;
    raise_limit_of_open_files();
    let service = Service::start();
    let gateway = gateway(&service, "");
    let mut crowd: Vec<_> = (0..CROWD).map(|_| TcpStream::connect(gateway.address).unwrap()).collect();
    all_at_once(&mut crowd, &service);
    // Whoever is answered may be back before its connection is idle: then there is one more, and in the end they are enough.
    let opened = (0..10).map(|_| {
        let before = service.connections();
        all_at_once(&mut crowd, &service);
        service.connections() - before
    });
    let opened: Vec<_> = opened.collect();
    assert!(opened.contains(&0), "opened each time: {opened:?}");
}

/// Whether something has come back.
fn is_answered(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let answered = stream.peek(&mut [0]).is_ok();
    stream.set_nonblocking(false).unwrap();
    answered
}

fn answer_to(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn large_bodies_fill_the_memory_that_is_theirs_and_stop_nobody() {
    const BODY: usize = 1 << 20;
    const CLIENTS: usize = 200;
    /// Each of them holds all but 32 KiB of its body, and a byte that has not come.
    const ROOM_FOR: usize = (128 << 20) / (BODY - (32 << 10) - 1);
    let service = Service::start();
    let gateway = gateway(&service, "");
    let clients = (0..CLIENTS).map(|number| {
        let mut stream = TcpStream::connect(gateway.address).unwrap();
        let head = format!(
            "POST /payments HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: key-of-a-large-one-{number:04}\r\nContent-Length: {BODY}\r\n\r\n"
        );
        // Whoever is refused in the middle is not listened to any more.
        let _sent = stream.write_all(&[head.as_bytes(), &vec![b'x'; BODY - 1]].concat());
        stream
    });
    let clients: Vec<TcpStream> = clients.collect();
    while clients.iter().filter(|stream| is_answered(stream)).count() < CLIENTS - ROOM_FOR {
        std::thread::sleep(Duration::from_millis(5));
    }
    for number in 0..50 {
        pay(&gateway, number);
    }
    let resident = gateway.resident();
    assert!(resident < MOST_MEMORY, "{resident} MiB");
    assert_eq!(service.executed(), 50);

    let (refused, mut held): (Vec<_>, Vec<_>) = clients.into_iter().partition(is_answered);
    println!("{} refused, {} held, {resident} MiB resident", refused.len(), held.len());
    for mut stream in refused {
        // What was sent and not read may cost the end of the answer, as with every server.
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 503");
    }
    assert!(held.len() > ROOM_FOR / 2, "{} were taken", held.len());
    for stream in &mut held {
        stream.write_all(b"x").unwrap();
        let answer = answer_to(stream);
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    assert_eq!(service.executed(), 50 + held.len());
}
