//! One server.

use crate::servers::answer::wait_for;
use crate::servers::directory::{Directory, free_port};
use crate::servers::programs::{find, missing};
use crate::servers::variables::{REDIS_SERVER, REDIS_URL};
use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server without persistence. It ends, and its directory goes, with this value.
#[derive(Debug)]
pub struct Redis {
    port: u16,
    program: PathBuf,
    arguments: Vec<String>,
    greeting: &'static [u8],
    server: Child,
    directory: Directory,
}

impl Redis {
    /// Starts one. Once this returns, it answers.
    ///
    /// # Errors
    /// redis-server is not there, or did not start: what it said.
    pub fn start() -> Result<Self, String> {
        Self::start_with(&[])
    }

    /// Starts one with these settings, as on its command line: `["--maxmemory", "2mb"]`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(settings: &[&str]) -> Result<Self, String> {
        Self::start_program(found()?, settings)
    }

    /// As [`start_with`](Self::start_with), with this program: a Redis, or a Valkey.
    ///
    /// # Errors
    /// As there.
    pub fn start_program(program: PathBuf, settings: &[&str]) -> Result<Self, String> {
        let port = free_port()?;
        let arguments = ["--port".to_owned(), port.to_string()];
        Self::run(
            program,
            port,
            arguments.into_iter().chain(settings.iter().map(|it| (*it).to_owned())),
            b"PING\r\n",
        )
    }

    /// Starts one that speaks TLS alone, with these PEM files.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_tls(certificate: &str, key: &str, authority: &str) -> Result<Self, String> {
        let port = free_port()?;
        let port_text = port.to_string();
        let arguments = [
            "--port",
            "0",
            "--tls-port",
            &port_text,
            "--tls-cert-file",
            certificate,
            "--tls-key-file",
            key,
            "--tls-ca-cert-file",
            authority,
            "--tls-auth-clients",
            "no",
        ];
        // That it accepts a connection has to do: nothing here speaks TLS.
        Self::run(found()?, port, arguments.into_iter().map(str::to_owned), b"")
    }

    pub(super) fn run(
        program: PathBuf,
        port: u16,
        arguments: impl IntoIterator<Item = String>,
        greeting: &'static [u8],
    ) -> Result<Self, String> {
        let directory = Directory::new(&env::temp_dir(), "redis")?;
        let place = directory.path().display();
        let common = [
            format!("--dir {place}"),
            format!("--pidfile {place}/redis.pid"),
            format!("--logfile {place}/redis.log"),
            "--bind 127.0.0.1".into(),
            "--appendonly no".into(),
        ];
        let common = common.iter().flat_map(|setting| setting.split(' ').map(str::to_owned));
        let common = common.chain(["--save".into(), String::new()]);
        let arguments: Vec<_> = arguments.into_iter().chain(common).collect();
        let server = spawn(&program, &arguments)?;
        let mut redis = Self { port, program, arguments, greeting, server, directory };
        redis.answers()?;
        Ok(redis)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What it answers to a command, as redis-cli prints it.
    ///
    /// # Errors
    /// redis-cli is not there, or failed: what it said.
    pub fn ask(&self, command: &[&str]) -> Result<String, String> {
        ask(self.port, command)
    }

    /// Kills it, as a crash of the process would. Once this returns, it is gone.
    ///
    /// # Errors
    /// It could not be killed.
    pub fn kill(&mut self) -> Result<(), String> {
        self.server.kill().and_then(|()| self.server.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Stops it where it is, or lets it go on: it keeps its connections and answers nothing.
    ///
    /// # Errors
    /// The program `kill` is not there.
    pub fn hold(&self, held: bool) -> Result<(), String> {
        let signal = if held { "-STOP" } else { "-CONT" };
        let mut sending = Command::new("kill");
        let sent = sending.arg(signal).arg(self.server.id().to_string()).stderr(Stdio::null()).status();
        sent.map(drop).map_err(|error| error.to_string())
    }

    /// Starts it at the same address, empty. Once this returns, it answers.
    ///
    /// # Errors
    /// It did not start: what it said.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.server = spawn(&self.program, &self.arguments)?;
        self.answers()
    }

    fn answers(&mut self) -> Result<(), String> {
        let log = self.directory.path().join("redis.log");
        let first: &[u8] = if self.greeting.is_empty() { b"" } else { b"+PONG" };
        wait_for(&mut self.server, self.port, self.greeting, first, &log)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _going_on = self.hold(false);
        let _gone = self.kill();
    }
}

pub(super) fn found() -> Result<PathBuf, String> {
    redis_server().ok_or_else(|| missing("Redis (redis-server, redis-cli)", REDIS_URL))
}

/// What the server on this port answers, as redis-cli prints it.
pub(super) fn ask(port: u16, command: &[&str]) -> Result<String, String> {
    let asked = Command::new("redis-cli").args(["-p", &port.to_string()]).args(command).output();
    let asked = asked.map_err(|error| format!("redis-cli could not be started: {error}"))?;
    let said = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    if asked.status.success() { Ok(said) } else { Err(said) }
}

fn spawn(program: &PathBuf, arguments: &[String]) -> Result<Child, String> {
    let mut server = Command::new(program);
    server.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    server.spawn().map_err(|error| format!("{} could not be started: {error}", program.display()))
}

/// The program that [`REDIS_SERVER`] names, or that is on the search path.
#[must_use]
pub fn redis_server() -> Option<PathBuf> {
    let named = env::var_os(REDIS_SERVER).map(PathBuf::from);
    named.into_iter().chain(find("redis-server", &[])).find(|program| program.is_file())
}
