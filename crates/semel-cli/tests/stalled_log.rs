//! A log that nobody reads: the standard error of a gateway is a full pipe. A log shipper that hangs, or a terminal that somebody
//! has stopped with Ctrl-S, must stop no request.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(target_os = "linux")]

use semel_testing::gateway::{Gateway, semel};
use std::io::{BufRead as _, BufReader, PipeReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What a new pipe holds on Linux, unless somebody changes it.
const PIPE: usize = 64 * 1024;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway whose standard error is a pipe that is full.
struct Stalled {
    gateway: Gateway,
    log: PipeReader,
}

impl Stalled {
    /// In front of a service that is not there: each request is worth a warning.
    fn with_a_full_log(format: &str) -> Self {
        let (log, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&vec![b'\n'; PIPE]).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("semel.toml");
        let config = format!(
            "upstream = \"http://127.0.0.1:9\"\nlisten = \"127.0.0.1:0\"\nstore = \"memory:\"\n\
             [admin]\nlisten = \"127.0.0.1:0\"\n[logs]\nformat = \"{format}\"\n"
        );
        std::fs::write(&file, config).unwrap();
        let mut command = semel();
        command.args(["gateway", "--config"]).arg(file).env_remove("SEMEL_ADMIN_TOKEN").stderr(writer);
        let gateway = Gateway::start_by(&mut command);
        Self { gateway, log }
    }

    /// Asks until the log has lost lines; returns how many by then.
    fn loses_lines(&self) -> u64 {
        let mut client = Client::connect(self.gateway.address);
        let begun = Instant::now();
        loop {
            // All at once: one after the other they take their time on a busy machine.
            for _ in 0..100 {
                client.ask("/orders");
            }
            for _ in 0..100 {
                assert_eq!(client.answer().0, 502);
            }
            match self.lost() {
                0 => assert!(begun.elapsed() < PATIENCE, "nothing is lost, and nobody reads"),
                lost => return lost,
            }
        }
    }

    fn lost(&self) -> u64 {
        let (status, metrics) = Client::connect(self.gateway.admin).get("/metrics");
        assert_eq!(status, 200);
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("api_idempotency_log_lines_dropped_total "));
        line.expect("it is counted").parse().unwrap()
    }
}

/// One connection.
struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    fn get(&mut self, path: &str) -> (u16, String) {
        self.ask(path);
        self.answer()
    }

    fn ask(&mut self, path: &str) {
        write!(self.0.get_mut(), "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    }

    /// The status and the body of the next answer.
    fn answer(&mut self) -> (u16, String) {
        let (mut line, mut status, mut length) = (String::new(), 0, 0);
        while line != "\r\n" {
            line.clear();
            self.0.read_line(&mut line).expect("an answer, whoever reads the log");
            if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

#[test]
fn requests_are_answered_though_nobody_reads_the_log_and_an_exit_does_not_wait_for_it() {
    let mut stalled = Stalled::with_a_full_log("text");
    assert!(stalled.loses_lines() > 0);
    assert_eq!(Client::connect(stalled.gateway.admin).get("/healthz").0, 200);
    stalled.gateway.is_told_to_end();
    let told = Instant::now();
    while stalled.gateway.is_running() {
        assert!(told.elapsed() < PATIENCE, "it waits for somebody to read its log");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn once_the_log_is_read_again_it_says_how_many_lines_are_missing_and_goes_on_to_the_last() {
    for format in ["text", "json"] {
        let mut stalled = Stalled::with_a_full_log(format);
        stalled.loses_lines();
        let lost = stalled.lost();
        let mut log = BufReader::new(std::mem::replace(&mut stalled.log, std::io::pipe().unwrap().0));
        let mut next = || {
            let mut line = String::new();
            assert!(log.read_line(&mut line).unwrap() > 0, "the log goes on");
            line
        };
        let note = loop {
            let line = next();
            if line.contains("log lines dropped") {
                break line;
            }
        };
        let number = if format == "json" { format!("\"lost\":{lost}") } else { format!("lost={lost}") };
        assert!(note.contains(&number) && note.contains("WARN"), "{lost}: {note}");
        // What comes after it is written as ever, the last line before the end included.
        assert_eq!(Client::connect(stalled.gateway.address).get("/orders").0, 502);
        assert!(next().contains("cannot be reached"));
        stalled.gateway.is_told_to_end();
        while !next().contains("stopping: no new connections") {}
        assert_eq!(stalled.gateway.wait(), Some(0));
    }
}
