//! `semel gateway` as users run it: a process in front of a service.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

use semel_testing::gateway::{Gateway, semel};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{ChildStderr, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A service that answers every request but those for `/slow`, and counts them.
struct Service {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, counted) = (stream.unwrap(), Arc::clone(&counted));
                std::thread::spawn(move || Self::serve(stream, &counted));
            }
        });
        Self { address, requests }
    }

    fn serve(mut stream: TcpStream, requests: &AtomicUsize) {
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let (mut line, mut first, mut length) = (String::new(), String::new(), 0);
        while lines.read_line(&mut line).is_ok_and(|read| read > 0) {
            if first.is_empty() {
                first.clone_from(&line);
            }
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                lines.read_exact(&mut vec![0; length]).unwrap();
                let number = requests.fetch_add(1, Ordering::SeqCst) + 1;
                if !first.contains("/slow") {
                    write!(stream, "HTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\n{number}").unwrap();
                }
                first.clear();
            }
            line.clear();
        }
    }
}

/// A running gateway, and what it logs.
struct Logging {
    gateway: Gateway,
    log: BufReader<ChildStderr>,
}

impl Logging {
    fn start(service: &Service, store: &Path) -> Self {
        let mut command = semel();
        command
            .args(["gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--upstream", &format!("http://{}", service.address)])
            .args(["--store", &format!("sqlite:{}", store.display())])
            .stderr(Stdio::piped());
        let mut gateway = Gateway::start_by(&mut command);
        let log = gateway.take_log();
        Self { gateway, log }
    }

    /// Sends a payment and reads the whole answer.
    fn pay(&self, path: &str, key: &str) -> String {
        let mut stream = self.begin(path, key);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn begin(&self, path: &str, key: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.gateway.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: {key}");
        write!(stream, "{head}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
        stream
    }
}

const KEY: &str = "key-of-a-payment-0001";

#[cfg(unix)]
#[test]
fn what_was_done_is_remembered_by_the_next_process() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.db");
    let mut gateway = Logging::start(&service, &file);
    let first = gateway.pay("/payments", KEY);
    assert!(first.starts_with("HTTP/1.1 201 Created") && first.ends_with("\r\n\r\n1"), "{first}");
    gateway.gateway.is_told_to_end();
    assert_eq!(gateway.gateway.wait(), Some(0));
    let mut log = String::new();
    gateway.log.read_to_string(&mut log).unwrap();
    assert!(log.contains("stopping"), "{log}");
    assert!(!log.contains(KEY) && !log.contains('\x1b'), "no keys, and no colours but on a terminal: {log}");

    let gateway = Logging::start(&service, &file);
    let retry = gateway.pay("/payments", KEY);
    assert!(retry.contains("idempotent-replayed: true") && retry.ends_with("\r\n\r\n1"), "{retry}");
    assert_eq!(service.requests.load(Ordering::SeqCst), 1);
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_it_at_once() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let mut gateway = Logging::start(&service, &directory.path().join("semel.db"));
    let _waiting = gateway.begin("/slow", KEY);
    while service.requests.load(Ordering::SeqCst) == 0 {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    gateway.gateway.is_told_to_end();
    let mut line = String::new();
    while !line.contains("waiting for requests in flight") {
        line.clear();
        assert!(gateway.log.read_line(&mut line).unwrap() > 0);
    }
    assert!(gateway.gateway.is_running(), "it waits");
    gateway.gateway.is_told_to_end();
    assert_eq!(gateway.gateway.wait(), Some(1));
}

fn refused(arguments: &[&str]) -> Output {
    let output = semel().arg("gateway").args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    output
}

#[test]
fn what_it_cannot_do_it_says_before_it_listens() {
    let said = |arguments: &[&str]| String::from_utf8(refused(arguments).stderr).unwrap();
    let scheme = said(&["--upstream", "ftp://localhost:3000"]);
    assert!(scheme.contains("--upstream") && scheme.contains("`ftp`"), "{scheme}");
    let bare = said(&["--upstream", "localhost:3000"]);
    assert!(bare.contains("http://"), "{bare}");
    let store = said(&["--upstream", "http://localhost:3000", "--store", "mongodb://a"]);
    assert!(store.contains("--store") && store.contains("sqlite:"), "{store}");
    let closed =
        said(&["--upstream", "http://localhost:3000", "--store", "postgres://me:s3cret@127.0.0.1:1/db"]);
    assert!(closed.contains(": connection refused: 127.0.0.1:1 (start PostgreSQL there"), "{closed}");
    assert!(!closed.contains("s3cret"), "{closed}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let listen = said(&["--upstream", "http://localhost:3000", "--store", "memory:", "--listen", &address]);
    assert!(listen.contains(&address) && listen.contains("choose another address"), "{listen}");
}

/// The status of a resolution of an operation that nobody has: refused or not, by whether the token is known.
fn resolve(address: SocketAddr, token: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"outcome":"completed","reason":"seen"}"#;
    write!(
        stream,
        "POST /v1/operations/0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4/resolve HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn an_admin_token_is_a_flag_or_a_variable_and_lets_operators_settle() {
    let by_flag: &[&str] = &["--admin-token", "env:TOKEN_OF_MINE"];
    for (flags, variable) in [(by_flag, "TOKEN_OF_MINE"), (&[], "SEMEL_ADMIN_TOKEN")] {
        let mut command = semel();
        command
            .args(["gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--upstream", "http://127.0.0.1:9", "--store", "memory:"])
            .args(flags)
            .env_remove("SEMEL_ADMIN_TOKEN")
            .env(variable, "s3cr3t-token");
        let gateway = Gateway::start_by(&mut command);
        let answered = ["s3cr3t-token", "another"].map(|token| resolve(gateway.admin, token));
        assert_eq!(answered, ["404", "401"], "{variable}");
    }
    let unset = semel()
        .args(["gateway", "--upstream", "http://127.0.0.1:9", "--admin-token", "env:NOT_SET_ANYWHERE"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&unset.stderr).into_owned();
    assert!(told.contains("--admin-token: the environment variable NOT_SET_ANYWHERE is not set"), "{told}");
}

#[test]
fn without_a_service_it_says_what_is_missing() {
    let output = semel().arg("gateway").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--upstream <URL>"));
}
