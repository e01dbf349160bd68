//! Runs one implementation, alone or behind the gateway, and lets `semel check` look at it.

use super::peers::{Install, Peer, Request, Store};
use super::results;
use crate::step;
use semel_testing::servers::{Cluster, free_port};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Longer than any of them takes to start, on a machine that does other things too.
const STARTING: Duration = Duration::from_secs(120);

/// What every run shares.
pub(super) struct Stage<'a> {
    /// The binary.
    pub(super) semel: PathBuf,
    /// Where packages were installed, a directory for each.
    pub(super) packages: PathBuf,
    /// Where runs have their files.
    pub(super) files: PathBuf,
    pub(super) postgres: &'a Cluster,
}

/// Processes that end with a run.
struct Running(Vec<Child>, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It may have ended already.
            let _killed = child.kill();
            let _status = child.wait();
        }
        let _killed =
            shell(&format!("kill -9 -$(cat {}/pid)", self.1.display())).stderr(Stdio::null()).status();
    }
}

fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null());
    shell
}

fn said(error: impl ToString) -> String {
    error.to_string()
}

/// Checks it, and returns the report.
pub(super) fn check(stage: &Stage<'_>, peer: &Peer, behind: bool) -> Result<Value, String> {
    let way = if behind { "behind" } else { "alone" };
    let here = stage.files.join(format!("{}-{way}", peer.id()));
    // What an earlier run left.
    let _gone = fs::remove_dir_all(&here);
    fs::create_dir_all(&here).map_err(said)?;
    fs::write(here.join("ledger"), "").map_err(said)?;
    let mut running = Running(Vec::new(), here.clone());
    let port = free_port()?;
    let packages = stage.packages.join(peer.name);
    let mut settings = format!(
        "export PORT={port} DIRECTORY={0} LEDGER={0}/ledger PACKAGES={1}",
        here.display(),
        packages.display()
    );
    match peer.store {
        Store::Own => {}
        Store::Redis => {
            let redis = free_port()?;
            let mut server = Command::new("redis-server");
            server
                .args(["--port", &redis.to_string(), "--save", "", "--dir"])
                .arg(&here)
                .stdout(Stdio::null());
            running.0.push(server.spawn().map_err(said)?);
            settings += &format!(" REDIS=redis://127.0.0.1:{redis}/0");
        }
        Store::Postgres => {
            let name = database(peer, way);
            let mut create = stage.postgres.program("psql")?;
            create.args([&stage.postgres.url("postgres"), "-qc", &format!("CREATE DATABASE {name}")]);
            if !create.status().is_ok_and(|status| status.success()) {
                return Err(format!("the database {name} cannot be made"));
            }
            settings += &format!(" POSTGRES='{}'", stage.postgres.url(&name));
        }
    }
    let service = step::root().join("proof/check").join(peer.id());
    if peer.request == Request::PretixOrder {
        prepare_pretix(&packages, &service, &here)?;
    }
    let start = format!(
        "cd {}\n{settings} SERVICE={} PYTHONDONTWRITEBYTECODE=1\nsetsid {} > {}/log 2>&1 & echo $! > {}/pid\n",
        // Parse Server writes logs where it is started.
        if matches!(peer.install, Install::Node(_)) { &here } else { &service }.display(),
        service.display(),
        peer.command(),
        here.display(),
        here.display()
    );
    fs::write(here.join("start.sh"), start).map_err(said)?;
    shell(&format!("sh {}/start.sh", here.display())).status().map_err(said)?;
    answers(peer, port, &here)?;
    let mut target = port;
    if behind {
        target = free_port()?;
        running.0.push(gateway(stage, peer, &here, port, target).map_err(said)?);
        answers(peer, target, &here)?;
    }
    let mut command = Command::new(&stage.semel);
    command
        .arg("check")
        .arg(format!("http://127.0.0.1:{target}"))
        .args(flags(stage, peer, &here, way, behind)?);
    command.args(["--kill", &format!("kill -9 -$(cat {}/pid)", here.display())]);
    command.args([
        "--start",
        &format!("sh {}/start.sh", here.display()),
        "--patience",
        "40s",
        "--timeout",
        "60s",
    ]);
    command.args(["--format", "json", "--report"]).arg(here.join("report.json"));
    command.stdout(Stdio::null()).stderr(fs::File::create(here.join("check.log")).map_err(said)?);
    command.status().map_err(said)?;
    let file = here.join("report.json");
    let report = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let report = serde_json::from_slice(&report).map_err(said)?;
    results::keep(&peer.id(), behind, &report)?;
    Ok(report)
}

/// The database of a run.
fn database(peer: &Peer, way: &str) -> String {
    format!("{}_{way}", peer.id().replace('-', "_"))
}

/// Waits until it answers: some listen long before that.
fn answers(peer: &Peer, port: u16, here: &Path) -> Result<(), String> {
    let deadline = Instant::now() + STARTING;
    let url = format!("http://127.0.0.1:{port}{}", ready(peer));
    while !step::succeeds(Command::new("curl").args(["-s", "-m", "60", &url])) {
        if Instant::now() > deadline {
            return Err(format!("it does not start: see {}/log", here.display()));
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// The path that answers once it is up.
fn ready(peer: &Peer) -> &'static str {
    match peer.request {
        Request::Payment => "/health",
        Request::ParseObject => "/up",
        Request::PretixOrder => "/api/v1/organizers/",
    }
}

/// Its tables are made once: that takes minutes.
fn prepare_pretix(packages: &Path, service: &Path, here: &Path) -> Result<(), String> {
    let prepared = packages.join("prepared");
    if !prepared.join("item").exists() {
        fs::create_dir_all(&prepared).map_err(said)?;
        let mut python = Command::new(packages.join("bin/python"));
        python
            .args(["service.py", "prepare"])
            .current_dir(service)
            .env("DIRECTORY", &prepared)
            .env("PORT", "80");
        if !python.status().is_ok_and(|status| status.success()) {
            return Err("pretix cannot be prepared".into());
        }
    }
    for file in ["pretix.db", "item"] {
        fs::copy(prepared.join(file), here.join(file)).map_err(said)?;
    }
    Ok(())
}

fn gateway(stage: &Stage<'_>, peer: &Peer, here: &Path, upstream: u16, port: u16) -> io::Result<Child> {
    let paths: &[&str] = match peer.request {
        Request::Payment => &["/payments", "/refunds"],
        Request::ParseObject => &["/classes/Payment"],
        Request::PretixOrder => &["/api/v1/organizers/{organizer}/events/{event}/orders/"],
    };
    let mut config = format!(
        "upstream = \"http://127.0.0.1:{upstream}\"\nlisten = \"127.0.0.1:{port}\"\nstore = \"sqlite:{}/semel.db\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n",
        here.display()
    );
    for (number, path) in paths.iter().enumerate() {
        config += &format!(
            "[[route]]\noperation = \"operation_{number}\"\nmatch = \"POST {path}\"\nkey = \"required\"\n"
        );
    }
    fs::write(here.join("semel.toml"), config)?;
    let log = fs::File::create(here.join("gateway.log"))?;
    let mut gateway = Command::new(&stage.semel);
    gateway.args(["gateway", "--config"]).arg(here.join("semel.toml"));
    gateway.stdout(log.try_clone()?).stderr(log).spawn()
}

/// What `semel check` is told.
fn flags(
    stage: &Stage<'_>,
    peer: &Peer,
    here: &Path,
    way: &str,
    behind: bool,
) -> Result<Vec<String>, String> {
    let words: Vec<String> = match peer.request {
        Request::Payment => [
            "--send",
            "POST /payments",
            "--body",
            r#"{"amount": 10, "reference": "r"}"#,
            "--mark",
            "/reference",
            "--header",
            "Authorization: Bearer alice",
            "--other-caller",
            "Authorization: Bearer bob",
            "--other-send",
            "POST /refunds",
            "--slow",
            "X-Delay: 800",
            "--fail-with",
            "X-Fail: 1",
            "--hostile",
            "--ready",
            "GET /health",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(["--ledger".to_owned(), format!("{}/ledger", here.display())])
        .collect(),
        Request::ParseObject => {
            let url = stage.postgres.url(&database(peer, way));
            let count = format!(
                "psql '{url}' -Atc \"select count(*) from \\\"Payment\\\" where reference = '{{reference}}'\" 2>/dev/null || echo 0"
            );
            let words = [
                "--send",
                "POST /classes/Payment",
                "--body",
                r#"{"amount": 10, "reference": "r"}"#,
                "--mark",
                "/reference",
            ];
            let more = [
                "--header",
                "X-Parse-Application-Id: shop",
                "--slow",
                "X-Delay: 1600",
                "--hostile",
                "--ready",
                "GET /up",
            ];
            words
                .into_iter()
                .chain(more)
                .map(str::to_owned)
                .chain(["--count-cmd".to_owned(), count])
                .collect()
        }
        Request::PretixOrder => {
            let item = fs::read_to_string(here.join("item")).map_err(said)?;
            let body = format!(
                r#"{{"email": "a@example.org", "locale": "en", "sales_channel": "web", "payment_provider": "manual", "status": "p", "comment": "r", "positions": [{{"item": {item}, "price": "10.00", "attendee_name": "A"}}]}}"#
            );
            let count = format!(
                "sqlite3 {}/pretix.db \"select count(*) from pretixbase_order where comment = '{{reference}}'\"",
                here.display()
            );
            let words = [
                "--send",
                "POST /api/v1/organizers/shop/events/show/orders/",
                "--mark",
                "/comment",
                "--vary",
                "/positions/0/price",
            ];
            let tokens = ["--header".to_owned(), format!("Authorization: Token {}", "alice".repeat(8))];
            let other = ["--other-caller".to_owned(), format!("Authorization: Token {}", "bob".repeat(8))];
            let more = ["--body".to_owned(), body, "--count-cmd".to_owned(), count];
            let fewer = ["--concurrency", "10", "--rounds", "2", "--ready", "GET /api/v1/organizers/"]
                .map(str::to_owned);
            words.map(str::to_owned).into_iter().chain(tokens).chain(other).chain(more).chain(fewer).collect()
        }
    };
    let header = match peer.request {
        Request::Payment => "idempotency-key",
        _ if behind => "idempotency-key",
        Request::ParseObject => "x-parse-request-id",
        Request::PretixOrder => "x-idempotency-key",
    };
    let key = ["--key-from".to_owned(), format!("header:{header}"), "--settle".to_owned(), "1s".to_owned()];
    Ok(words.into_iter().chain(key).collect())
}

/// Installs it, unless this very version is there.
pub(super) fn install(stage: &Stage<'_>, peer: &Peer) -> Result<(), String> {
    let place = stage.packages.join(peer.name);
    let (wanted, done) = match &peer.install {
        Install::Python(packages) | Install::Node(packages) => {
            (packages.join(" "), place.join("semel-packages"))
        }
    };
    if fs::read_to_string(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    println!("    installing {wanted}");
    fs::create_dir_all(&place).map_err(said)?;
    let installed = match &peer.install {
        Install::Python(packages) => {
            let venv = step::succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&place));
            let mut pip = Command::new(place.join("bin/pip"));
            pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(*packages);
            venv && pip.status().is_ok_and(|status| status.success())
        }
        Install::Node(packages) => {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-fund", "--no-audit", "--silent", "--prefix"])
                .arg(&place)
                .args(*packages);
            npm.status().is_ok_and(|status| status.success())
        }
    };
    if !installed {
        return Err(format!("{wanted} cannot be installed"));
    }
    fs::write(done, wanted).map_err(said)
}
