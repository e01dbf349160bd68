//! `semel gateway` and `semel worker` as users run them.

use super::http::{Answer, exchange, send};
use super::wrong_clock::ClockOff;
use jiff::Timestamp;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const TOKEN: &str = "the-token-of-the-operators";

/// `a-secret-of-the-providers-own-choice`
pub(crate) const SECRET: &str = "whsec_YS1zZWNyZXQtb2YtdGhlLXByb3ZpZGVycy1vd24tY2hvaWNl";

/// What is waited for comes long before this, on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks again and again until there is something to be seen.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
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
pub(crate) fn config(directory: &Path, name: &str, service: SocketAddr, rest: &str) -> PathBuf {
    let store = format!("sqlite:{}", directory.join("semel.db").display());
    config_on(&store, directory, name, service, rest)
}

/// The same, on a store of one's own choice.
pub(crate) fn config_on(
    store: &str,
    directory: &Path,
    name: &str,
    service: SocketAddr,
    rest: &str,
) -> PathBuf {
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

pub(crate) fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    command
        .env_remove("SEMEL_ADMIN")
        .env_remove("NO_COLOR")
        .env("SEMEL_ADMIN_TOKEN", TOKEN)
        .env("USER", "ada");
    command
}

pub(crate) struct Gateway {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Gateway {
    pub(crate) fn start(config: &Path) -> Self {
        Self::spawn(semel(), config)
    }

    /// On a machine whose clock is wrong.
    pub(crate) fn start_with(config: &Path, clock: ClockOff) -> Self {
        let mut command = semel();
        clock.on(&mut command);
        Self::spawn(command, config)
    }

    fn spawn(mut command: Command, config: &Path) -> Self {
        let mut process = command
            .args(["gateway", "--config"])
            .arg(config)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next =
            || said.find_map(|line| line.split("http://").nth(1)?.split(' ').next()?.parse().ok()).unwrap();
        let (address, admin) = (next(), next());
        Self { process, address, admin }
    }

    /// Pays; the service does with it what `x_do` says.
    pub(crate) fn pay(&self, key: &str, x_do: &str) -> Answer {
        self.pay_at("/payments", key, x_do)
    }

    pub(crate) fn pay_at(&self, path: &str, key: &str, x_do: &str) -> Answer {
        let headers = [("idempotency-key", key), ("x-do", x_do), ("content-type", "application/json")];
        exchange(self.address, "POST", path, &headers, r#"{"amount":"12.50"}"#)
    }

    /// Begins to pay, and does not wait.
    pub(crate) fn begin(&self, key: &str, x_do: &str) -> TcpStream {
        self.begin_at("/payments", key, x_do)
    }

    pub(crate) fn begin_at(&self, path: &str, key: &str, x_do: &str) -> TcpStream {
        let headers = [("idempotency-key", key), ("x-do", x_do), ("content-type", "application/json")];
        send(self.address, "POST", path, &headers, r#"{"amount":"12.50"}"#)
    }

    /// Asks the admin API.
    pub(crate) fn ask(&self, path: &str) -> Answer {
        exchange(self.admin, "GET", path, &[("authorization", &format!("Bearer {TOKEN}"))], "")
    }

    /// The operation of a key, with its history; `None` before it has one.
    pub(crate) fn operation(&self, key: &str) -> Option<Value> {
        let listed = self.ask(&format!("/v1/operations?key={key}")).json();
        let id = listed["operations"].as_array().unwrap().first()?["operation_id"].as_str()?.to_owned();
        let shown = self.ask(&format!("/v1/operations/{id}"));
        (shown.status == 200).then(|| shown.json())
    }

    /// Waits until the operation of a key is as it should be.
    #[track_caller]
    pub(crate) fn until(&self, key: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(&format!("of {key}"), || self.operation(key).filter(&is))
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.ask("/metrics").body;
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        let value = line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("{name}: {text}")) as u64
    }

    pub(crate) fn operations(&self, arguments: &[&str]) -> Output {
        let admin = format!("http://{}", self.admin);
        semel().arg("operations").args(arguments).args(["--admin", &admin]).output().unwrap()
    }

    /// Tells it to end, and waits until it has.
    #[allow(dead_code, reason = "for the tests of what is seen from outside")]
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.is_told_to_end();
        self.process.wait().unwrap().code()
    }

    /// SIGTERM.
    pub(crate) fn is_told_to_end(&self) {
        self.is_signalled("-TERM");
    }

    pub(crate) fn is_signalled(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Kills it, without a warning.
    pub(crate) fn kill(mut self) {
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

/// `semel worker`.
pub(crate) struct Worker(Child);

impl Worker {
    pub(crate) fn start(config: &Path) -> Self {
        Self::start_logging(config, Stdio::null())
    }

    /// What it logs goes there.
    pub(crate) fn start_logging(config: &Path, log: impl Into<Stdio>) -> Self {
        Self(semel().args(["worker", "--config"]).arg(config).stderr(log).spawn().unwrap())
    }

    /// With an admin API of its own, and where that is.
    pub(crate) fn start_with_admin(config: &Path) -> (Self, SocketAddr) {
        let mut command = semel();
        let command = command.args(["worker", "--admin-listen", "127.0.0.1:0", "--config"]).arg(config);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let address = said.find_map(|line| line.split("http://").nth(1)?.parse().ok());
        (Self(process), address.expect("it says where its admin API is"))
    }

    /// On a machine whose clock is wrong. Returns once it works, with what time it takes it to be.
    pub(crate) fn start_with(config: &Path, clock: ClockOff) -> (Self, Timestamp) {
        let mut command = semel();
        let command = clock.on(&mut command).args(["worker", "--config"]).arg(config);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let first = said.find(|line| line.contains("worker started")).expect("it says that it works");
        // Whatever else it says, somebody reads it.
        std::thread::spawn(move || said.for_each(drop));
        let time = first.split_whitespace().find_map(|word| word.parse().ok());
        (Self(process), time.unwrap_or_else(|| panic!("no time of day: {first}")))
    }

    /// Tells it to end, and waits until it has.
    pub(crate) fn stop(mut self) -> Option<i32> {
        self.is_signalled("-TERM");
        self.0.wait().unwrap().code()
    }

    /// SIGHUP.
    pub(crate) fn is_told_to_reload(&self) {
        self.is_signalled("-HUP");
    }

    fn is_signalled(&self, signal: &str) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
