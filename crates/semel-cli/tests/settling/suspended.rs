//! A gateway is suspended while it sends, past its lease. When it wakes up, the operation is another's.

use crate::support::{Answer, Gateway, config, exchange, until};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};

const KEY: &str = "key-of-a-payment-0001";

/// More than the system keeps of what nobody reads, on both sides.
const LENGTH: usize = 48 << 20;

/// What the service made of a connection: the number of the connection, and whether a whole request came over it.
type Seen = (usize, bool);

/// A service whose first connection reads the head of a request and then waits until it may read on.
struct SlowReader {
    address: SocketAddr,
    heads: mpsc::Receiver<usize>,
    reads_on: mpsc::Sender<()>,
    seen: mpsc::Receiver<Seen>,
    effects: Arc<AtomicUsize>,
}

impl SlowReader {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ((tell_head, heads), (reads_on, may_read), (tell, seen)) =
            (mpsc::channel(), mpsc::channel(), mpsc::channel());
        let effects = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&effects);
        std::thread::spawn(move || {
            let mut may_read = Some(may_read);
            for (number, stream) in listener.incoming().enumerate() {
                let (tell_head, tell, counted) = (tell_head.clone(), tell.clone(), Arc::clone(&counted));
                let waits = may_read.take();
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    let is_whole = read_request(stream, || {
                        let _ = tell_head.send(number + 1);
                        waits.map(|waits| waits.recv());
                    });
                    counted.fetch_add(usize::from(is_whole), SeqCst);
                    let _ = tell.send((number + 1, is_whole));
                });
            }
        });
        Self { address, heads, reads_on, seen, effects }
    }
}

/// Whether it was whole. It is answered then.
fn read_request(mut stream: TcpStream, after_head: impl FnOnce()) -> bool {
    let (mut read, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    let end = loop {
        match stream.read(&mut piece[..1024]) {
            Ok(0) | Err(_) => return false,
            Ok(count) => read.extend_from_slice(&piece[..count]),
        }
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    after_head();
    let mut left = LENGTH - (read.len() - end);
    while left > 0 {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(count) => left -= count,
        }
    }
    let _ = stream.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\ndone");
    true
}

fn pay(address: SocketAddr, body: &str) -> Answer {
    let headers = [("idempotency-key", KEY), ("content-type", "text/plain")];
    exchange(address, "POST", "/payments", &headers, body)
}

#[test]
fn a_gateway_that_was_suspended_past_its_lease_finishes_nothing() {
    let service = SlowReader::start();
    let directory = tempfile::tempdir().unwrap();
    let rest =
        "lease = \"3s\"\ntimeout = \"2500ms\"\nmax_request_body = \"64MiB\"\n[worker]\nin_gateway = false\n";
    let file = config(directory.path(), "semel.toml", service.address, rest);
    let (suspended, other) = (Gateway::start(&file), Gateway::start(&file));
    let body = Arc::new("x".repeat(LENGTH));
    let (address, sent) = (suspended.address, Arc::clone(&body));
    let waiting = std::thread::spawn(move || pay(address, &sent));
    assert_eq!(service.heads.recv(), Ok(1));
    suspended.is_signalled("-STOP");

    // Another instance finds the lease over, an operator finds that nothing was executed, and the next attempt executes.
    until("the lease is over", || {
        (pay(other.address, &body).code() == "idempotency_outcome_unknown").then_some(())
    });
    let id = other.operation(KEY).unwrap()["operation_id"].as_str().unwrap().to_owned();
    let not_executed =
        ["resolve", &id, "--outcome", "not_executed", "--attempt", "1", "--reason", "no trace", "--yes"];
    let resolved = other.operations(&not_executed);
    assert!(resolved.status.success(), "{}", String::from_utf8_lossy(&resolved.stderr));
    assert_eq!(pay(other.address, &body).status, 201);
    assert_eq!(service.seen.recv(), Ok((2, true)));

    // There is room for the rest of the first request before the suspended gateway wakes up.
    service.reads_on.send(()).unwrap();
    suspended.is_signalled("-CONT");
    assert_eq!(service.seen.recv(), Ok((1, false)), "it is broken off");
    assert_eq!(service.effects.load(SeqCst), 1);
    // Its client gets what every retry gets, or is told that it is not known.
    let late = waiting.join().unwrap();
    assert!(late.status == 504 || (late.status == 201 && late.body == "done"), "{late:?}");
    assert_eq!(pay(other.address, &body).body, "done");
}
