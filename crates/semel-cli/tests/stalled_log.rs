//! A log that nobody reads: the standard error of a gateway is a full pipe. A log shipper that hangs, or a terminal that somebody
//! has stopped with Ctrl-S, must stop no request.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(target_os = "linux")]

use std::io::{BufRead as _, BufReader, PipeReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a new pipe holds on Linux, unless somebody changes it.
const PIPE: usize = 64 * 1024;

/// Longer than anything takes that works.
const PATIENCE: Duration = Duration::from_secs(60);

struct Gateway {
    process: Child,
    address: SocketAddr,
    admin: SocketAddr,
    log: PipeReader,
}

impl Gateway {
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
        let mut process = Command::new(env!("CARGO_BIN_EXE_semel"))
            .args(["gateway", "--config"])
            .arg(file)
            .stdout(Stdio::piped())
            .stderr(writer)
            .spawn()
            .unwrap();
        let (say, said) = std::sync::mpsc::channel();
        let out = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        let address = || -> SocketAddr {
            let line = said.recv_timeout(PATIENCE).expect("it starts, whoever reads the log");
            line.split("http://").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
        };
        let (public, admin) = (address(), address());
        Self { process, address: public, admin, log }
    }

    /// Asks until the log has lost lines; returns how many by then.
    fn loses_lines(&self) -> u64 {
        let mut client = Client::connect(self.address);
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
        let (status, metrics) = Client::connect(self.admin).get("/metrics");
        assert_eq!(status, 200);
        let line =
            metrics.lines().find_map(|line| line.strip_prefix("api_idempotency_log_lines_dropped_total "));
        line.expect("it is counted").parse().unwrap()
    }

    fn is_told_to_stop(&self) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
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
    let mut gateway = Gateway::with_a_full_log("text");
    assert!(gateway.loses_lines() > 0);
    assert_eq!(Client::connect(gateway.admin).get("/healthz").0, 200);
    gateway.is_told_to_stop();
    let told = Instant::now();
    while gateway.process.try_wait().unwrap().is_none() {
        assert!(told.elapsed() < PATIENCE, "it waits for somebody to read its log");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn once_the_log_is_read_again_it_says_how_many_lines_are_missing_and_goes_on_to_the_last() {
    for format in ["text", "json"] {
        let mut gateway = Gateway::with_a_full_log(format);
        gateway.loses_lines();
        let lost = gateway.lost();
        let mut log = BufReader::new(std::mem::replace(&mut gateway.log, std::io::pipe().unwrap().0));
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
        assert_eq!(Client::connect(gateway.address).get("/orders").0, 502);
        assert!(next().contains("cannot be reached"));
        gateway.is_told_to_stop();
        while !next().contains("stopping: no new connections") {}
        assert_eq!(gateway.process.wait().unwrap().code(), Some(0));
    }
}
