//! `semel gateway` as a process. When it ends, what it wrote is read: no secret may be in it.

use super::{Answer, Ask, SECRET, Service, send, until};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The admin token of every gateway with a configuration.
pub(crate) const TOKEN: &str = "t0ken-of-the-operator";

/// The binary, whatever the environment of the tests says.
pub(crate) fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "SEMEL_ADMIN", "SEMEL_ADMIN_TOKEN", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

/// The file that a gateway is started with.
const FILE: &str = "semel.toml";

/// A configuration of these settings and sections.
pub(crate) fn configuration(service: &Service, store: &str, settings: &str, sections: &str) -> String {
    let port = service.port;
    format!(
        r#"
upstream = "http://127.0.0.1:{port}"
listen = "127.0.0.1:0"
store = "{store}"
{settings}
[admin]
listen = "127.0.0.1:0"
token = "{TOKEN}"
[logs]
format = "json"
level = "trace"
{sections}
"#
    )
}

/// A running gateway. Killed when it is dropped.
pub(crate) struct Gateway {
    process: Child,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    out: Written,
    log: Written,
    logs_json: bool,
    config: Option<TempDir>,
}

impl Gateway {
    /// With everything by flags, and nothing configured.
    pub(crate) async fn by_flags(service: &Service, store: &str) -> Self {
        let mut command = semel();
        command.args(["gateway", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(["--upstream", &format!("http://127.0.0.1:{}", service.port), "--store", store]);
        Self::start(command, None).await
    }

    /// With a configuration of these settings and sections.
    pub(crate) async fn configured(service: &Service, store: &str, settings: &str, sections: &str) -> Self {
        Self::configured_under(service, store, settings, sections, []).await
    }

    /// The same, with these variables in its environment.
    pub(crate) async fn configured_under<const N: usize>(
        service: &Service,
        store: &str,
        settings: &str,
        sections: &str,
        environment: [(&str, &Path); N],
    ) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(FILE);
        std::fs::write(&file, configuration(service, store, settings, sections)).unwrap();
        let mut command = semel();
        command.args(["gateway", "--config"]).arg(file).envs(environment);
        Self::start(command, Some(directory)).await
    }

    /// Its file is this from now on. It has not been told.
    pub(crate) fn is_given(&self, configuration: &str) {
        let directory = self.config.as_ref().expect("it has a configuration").path();
        std::fs::write(directory.join(FILE), configuration).unwrap();
    }

    /// SIGHUP.
    pub(crate) fn is_told_to_reload(&self) {
        self.is_signalled("-HUP");
    }

    /// Returns once it listens.
    async fn start(mut command: Command, config: Option<TempDir>) -> Self {
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary can be started");
        let out = Written::by(process.stdout.take().unwrap());
        let log = Written::by(process.stderr.take().unwrap());
        until("it listens", || {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "it ended at once, {ended:?}: {}", log.text());
            out.text().lines().count() == 2
        })
        .await;
        let said = out.text();
        let address = |name: &str| -> Option<SocketAddr> {
            let line = said.lines().find(|line| line.starts_with(name))?;
            line.split("http://").nth(1)?.split(' ').next()?.parse().ok()
        };
        let (public, admin) = (address("semel gateway:").unwrap(), address("admin API:").unwrap());
        let logs_json = config.is_some();
        Self { process, address: public, admin, out, log, logs_json, config }
    }

    pub(crate) async fn send(&self, ask: &Ask) -> Answer {
        send(self.address, ask).await
    }

    /// Asks the admin API, with the token.
    pub(crate) async fn asked(&self, path: &str) -> Answer {
        let ask = Ask::new(&format!("GET {path}")).field(&format!("Authorization: Bearer {TOKEN}"));
        send(self.admin, &ask).await
    }

    /// Waits until the log has this in it.
    pub(crate) async fn has_logged(&self, what: &str) {
        until(what, || self.log.text().contains(what)).await;
    }

    /// SIGTERM.
    pub(crate) fn is_told_to_end(&self) {
        self.is_signalled("-TERM");
    }

    fn is_signalled(&self, signal: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("it ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap()
    }

    /// `kill -9`: no farewell, no clearing up.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
    }

    fn reveals_nothing(&self) {
        for (name, text) in [("stdout", self.out.text()), ("stderr", self.log.text())] {
            for line in text.lines() {
                let secret = SECRET.into_iter().find(|secret| line.contains(secret));
                assert_eq!(secret, None, "{name}: {line}");
                assert!(!line.contains('\x1b'), "colours are for terminals: {line}");
            }
        }
        // Of a process that was killed the last line may be half of one.
        let log = self.log.text();
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for line in whole.lines().filter(|_| self.logs_json) {
            let json: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
            assert!(json["level"].is_string() && json["timestamp"].is_string(), "{line}");
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _status = self.process.wait();
        self.out.is_whole();
        self.log.is_whole();
        if std::thread::panicking() {
            eprintln!("the gateway's log: {}", self.log.text());
        } else {
            self.reveals_nothing();
        }
    }
}

/// What a process has written so far.
struct Written {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Written {
    fn by(pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let gathered = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            while let Ok(piece @ [_, ..]) = pipe.fill_buf() {
                let length = piece.len();
                gathered.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(piece);
                pipe.consume(length);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The process has ended: reads what is left.
    fn is_whole(&mut self) {
        if let Some(reader) = self.reader.take() {
            let _read = reader.join();
        }
    }
}
