//! Servers that tests share.

use semel_testing::servers::{HOST, Host, NATS_URL, POSTGRES_BIN, POSTGRES_URL, Server};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// In a process of its own, this is what [`a_killed_process_leaves_no_server_behind`] kills; elsewhere it only shows that it works.
#[test]
fn a_server_starts_when_it_is_first_asked_for() {
    let server = if std::env::var_os(OTHER).is_some() { Server::Postgres } else { Server::Nats };
    let url = server.url();
    assert!(answers(&url));
    eprintln!("started {url}");
    if std::env::var_os(WAIT).is_some() {
        std::thread::park();
    }
}

const WAIT: &str = "SEMEL_TEST_WAIT_TO_BE_KILLED";
const OTHER: &str = "SEMEL_TEST_ASK_FOR_POSTGRES";

/// This test program again, for the test above alone.
fn again() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["shared::a_server_starts_when_it_is_first_asked_for", "--exact", "--nocapture"]);
    command.env_remove(NATS_URL).env_remove(HOST).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::piped());
    command
}

fn started(said: impl std::io::Read) -> String {
    let mut lines = BufReader::new(said).lines().map(Result::unwrap);
    lines.find_map(|line| Some(line.strip_prefix("started ")?.to_owned())).unwrap()
}

fn answers(url: &str) -> bool {
    TcpStream::connect(url.strip_prefix("nats://").unwrap()).is_ok()
}

fn ends(url: &str) {
    let began = Instant::now();
    while answers(url) {
        assert!(began.elapsed() < Duration::from_secs(30), "{url} still answers");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_process_leaves_no_server_behind() {
    let mut process = again().env(WAIT, "1").spawn().unwrap();
    let url = started(process.stderr.take().unwrap());
    assert!(answers(&url), "it runs for as long as the process");
    process.kill().unwrap();
    process.wait().unwrap();
    ends(&url);
}

#[test]
fn processes_of_one_run_share_the_servers_of_their_host() {
    let host = Host::start().unwrap();
    let urls: Vec<String> = std::thread::scope(|scope| {
        let run = || {
            let output = again().envs(host.settings()).output().unwrap();
            started(&output.stderr[..])
        };
        let runs = [scope.spawn(run), scope.spawn(run)];
        runs.map(|run| run.join().unwrap()).into()
    });
    assert_eq!(urls[0], urls[1]);
    assert!(answers(&urls[0]), "it outlives those who asked for it");
    drop(host);
    assert!(!answers(&urls[0]), "it ends with the host");
}

#[test]
fn whoever_asks_is_told_why_there_is_no_server() {
    let output = again().env("SEMEL_TEST_SERVERS", "127.0.0.1:1").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("127.0.0.1:1, which does not answer"), "{said}");
    let mut again = again();
    again.env(OTHER, "1").env(POSTGRES_BIN, "/nowhere").env("CARGO_PKG_NAME", "semel-postgres");
    let output = again.env_remove(POSTGRES_URL).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let missing = "not found: run `cargo xtask test semel-postgres`, which installs it or says how";
    assert!(!output.status.success() && said.contains(missing), "{said}");
}
