//! NATS with JetStream.

use crate::servers::answer::wait_for;
use crate::servers::directory::{Directory, free_port};
use crate::servers::programs::{missing, search_path, tools};
use crate::servers::variables::NATS_SERVER;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

/// A server with JetStream, which syncs every message before it confirms it unless told otherwise. It ends, and its directory goes, with this value.
#[derive(Debug)]
pub struct Nats {
    program: PathBuf,
    port: u16,
    server: Child,
    // After the server: whoever ends first is not waited for by the other.
    directory: Directory,
}

impl Nats {
    /// Makes a server in the system's directory for temporary files, and starts it. Once this returns, it answers.
    ///
    /// # Errors
    /// nats-server is not there, or did not start: what it said.
    pub fn start() -> Result<Self, String> {
        Self::start_program(found()?)
    }

    /// As [`start`](Self::start), but it syncs as it does by default, every two minutes: what it has confirmed can be lost with its
    /// machine. For measurements.
    ///
    /// # Errors
    /// As there.
    pub fn start_unsynced() -> Result<Self, String> {
        Self::start_with(found()?, "2m")
    }

    /// As [`start`](Self::start), with this program.
    ///
    /// # Errors
    /// As there.
    pub fn start_program(program: PathBuf) -> Result<Self, String> {
        Self::start_with(program, "always")
    }

    fn start_with(program: PathBuf, sync_interval: &str) -> Result<Self, String> {
        let directory = Directory::new(&env::temp_dir(), "nats")?;
        let port = free_port()?;
        let place = directory.path().display();
        let settings = format!(
            "listen: \"127.0.0.1:{port}\"\npid_file: \"{place}/nats.pid\"\nlog_file: \"{place}/nats.log\"\n\
             jetstream {{ store_dir: \"{place}/data\", sync_interval: {sync_interval} }}\n",
        );
        let file = directory.path().join("nats.conf");
        fs::write(&file, settings).map_err(|error| format!("{}: {error}", file.display()))?;
        let server = run(&program, directory.path())?;
        let mut nats = Self { program, port, server, directory };
        nats.answers()?;
        Ok(nats)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Where it lives.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Kills it, as a crash of the process would. Once this returns, it is gone.
    ///
    /// # Errors
    /// It could not be killed.
    pub fn kill(&mut self) -> Result<(), String> {
        self.server.kill().and_then(|()| self.server.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Starts it at the same address with what it had on disk. Once this returns, it answers.
    ///
    /// # Errors
    /// It did not start: what it said.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.server = run(&self.program, self.directory.path())?;
        self.answers()
    }

    fn answers(&mut self) -> Result<(), String> {
        let log = self.directory.path().join("nats.log");
        wait_for(&mut self.server, self.port, b"", b"INFO ", &log)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _gone = self.kill();
    }
}

fn found() -> Result<PathBuf, String> {
    nats_server().ok_or_else(|| missing("nats-server 2.10 or newer", NATS_SERVER))
}

fn run(program: &Path, directory: &Path) -> Result<Child, String> {
    let mut server = Command::new(program);
    server.arg("-c").arg(directory.join("nats.conf"));
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    server.map_err(|error| format!("{} could not be started: {error}", program.display()))
}

/// The program that [`NATS_SERVER`] names, that is on the search path, or in [`tools`]. Older ones than 2.10 cannot sync every write.
#[must_use]
pub fn nats_server() -> Option<PathBuf> {
    let named = env::var_os(NATS_SERVER).map(PathBuf::from);
    let found = search_path().into_iter().map(|directory| directory.join("nats-server"));
    let own = tools().map(|tools| tools.join("nats/bin/nats-server"));
    named.into_iter().chain(found).chain(own).find(|program| program.is_file() && is_new(program))
}

fn is_new(program: &Path) -> bool {
    let said = Command::new(program).arg("--version").output();
    let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    // "nats-server: v2.15.1"
    let version = said.trim().rsplit_once('v').map_or("", |(_, version)| version);
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (2, 10)
}
