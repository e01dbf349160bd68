//! `semel gateway` and `semel worker` as users run them: processes of the binary, a service behind them, and a receiver of events.

mod exchange;
mod receiver;
mod service;
mod worker;
mod wrong_clock;

pub use exchange::{Answer, exchange, send, try_exchange};
pub use receiver::{Kept, Receiver};
pub use service::Service;
pub use worker::Worker;
pub use wrong_clock::ClockOff;

use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const TOKEN: &str = "the-token-of-the-operators";

/// `a-secret-of-the-providers-own-choice`
pub const SECRET: &str = "whsec_YS1zZWNyZXQtb2YtdGhlLXByb3ZpZGVycy1vd24tY2hvaWNl";

/// What is waited for comes long before this, on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to be seen.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Writes a configuration with one route, before this service. `rest` begins within the route.
pub fn config(directory: &Path, name: &str, service: SocketAddr, rest: &str) -> PathBuf {
    let store = format!("sqlite:{}", directory.join("semel.db").display());
    config_on(&store, directory, name, service, rest)
}

/// The same, on a store of one's own choice.
pub fn config_on(store: &str, directory: &Path, name: &str, service: SocketAddr, rest: &str) -> PathBuf {
    let text = format!(
        r#"
upstream = "http://{service}"
listen = "127.0.0.1:0"
store = "{store}"
store_timeout = "20s"
[admin]
listen = "127.0.0.1:0"
token = "{TOKEN}"
[[route]]
operation = "create_payment"
match = "POST /payments"
{rest}"#
    );
    let file = directory.join(name);
    std::fs::write(&file, text).unwrap();
    file
}

/// The binary that cargo built beside this test, whatever the environment says.
pub fn semel() -> Command {
    let test = std::env::current_exe().expect("the path of this test");
    // `target/debug/deps/settling-0123456789abcdef`
    let built = test.ancestors().nth(2).expect("cargo's directory");
    let mut command = Command::new(built.join("semel").with_extension(std::env::consts::EXE_EXTENSION));
    for name in ["SEMEL_ADMIN", "NO_COLOR", "CLICOLOR_FORCE", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("SEMEL_ADMIN_TOKEN", TOKEN).env("USER", "ada");
    command
}

/// A running gateway. Killed when it is dropped.
pub struct Gateway {
    process: Child,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    directory: Option<TempDir>,
}

impl Gateway {
    pub fn start(config: &Path) -> Self {
        Self::configured(semel(), config)
    }

    /// On a machine whose clock is wrong.
    pub fn start_with(config: &Path, clock: ClockOff) -> Self {
        let mut command = semel();
        clock.on(&mut command);
        Self::configured(command, config)
    }

    fn configured(mut command: Command, config: &Path) -> Self {
        Self::start_by(command.args(["gateway", "--config"]).arg(config).stderr(Stdio::null()))
    }

    /// Starts it by this command, and returns once it has said where it and its admin API listen.
    pub fn start_by(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("the binary can be started");
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next = || said.find_map(|line| line.split("://").nth(1)?.split(' ').next()?.parse().ok());
        let (address, admin) = (next(), next());
        let address = address.expect("it says where it listens");
        Self { process, address, admin: admin.expect("it says where its admin API is"), directory: None }
    }

    /// Keeps a directory for as long as it runs.
    #[must_use]
    pub fn keeping(mut self, directory: TempDir) -> Self {
        self.directory = Some(directory);
        self
    }

    /// What it logs, where its command has `stderr` piped.
    pub fn take_log(&mut self) -> BufReader<ChildStderr> {
        BufReader::new(self.process.stderr.take().expect("its log is piped"))
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> Option<i32> {
        self.process.wait().unwrap().code()
    }

    /// Its resident memory, in MiB.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Pays; the service does with it what `x_do` says.
    pub fn pay(&self, key: &str, x_do: &str) -> Answer {
        self.pay_at("/payments", key, x_do)
    }

    pub fn pay_at(&self, path: &str, key: &str, x_do: &str) -> Answer {
        let headers = [("idempotency-key", key), ("x-do", x_do), ("content-type", "application/json")];
        exchange(self.address, "POST", path, &headers, r#"{"amount":"12.50"}"#)
    }

    /// Begins to pay, and does not wait.
    pub fn begin(&self, key: &str, x_do: &str) -> TcpStream {
        self.begin_at("/payments", key, x_do)
    }

    pub fn begin_at(&self, path: &str, key: &str, x_do: &str) -> TcpStream {
        let headers = [("idempotency-key", key), ("x-do", x_do), ("content-type", "application/json")];
        send(self.address, "POST", path, &headers, r#"{"amount":"12.50"}"#)
    }

    /// Asks the admin API.
    pub fn ask(&self, path: &str) -> Answer {
        exchange(self.admin, "GET", path, &[("authorization", &format!("Bearer {TOKEN}"))], "")
    }

    /// The operation of a key, with its history; `None` before it has one.
    pub fn operation(&self, key: &str) -> Option<Value> {
        let listed = self.ask(&format!("/v1/operations?key={key}")).json();
        let id = listed["operations"].as_array().unwrap().first()?["operation_id"].as_str()?.to_owned();
        let shown = self.ask(&format!("/v1/operations/{id}"));
        (shown.status == 200).then(|| shown.json())
    }

    /// Waits until the operation of a key is as it should be.
    #[track_caller]
    pub fn until(&self, key: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(&format!("of {key}"), || self.operation(key).filter(&is))
    }

    pub fn metric(&self, name: &str) -> u64 {
        let text = self.ask("/metrics").body;
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("{name}: {text}")) as u64
    }

    pub fn operations(&self, arguments: &[&str]) -> Output {
        let admin = format!("http://{}", self.admin);
        semel().arg("operations").args(arguments).args(["--admin", &admin]).output().unwrap()
    }

    /// Tells it to end, and waits until it has.
    pub fn stop(mut self) -> Option<i32> {
        self.is_told_to_end();
        self.wait()
    }

    /// SIGTERM.
    pub fn is_told_to_end(&self) {
        self.is_signalled("-TERM");
    }

    pub fn is_signalled(&self, signal: &str) {
        self::signal(&self.process, signal);
    }

    /// Kills it, without a warning.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn signal(process: &Child, signal: &str) {
    let id = process.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}
