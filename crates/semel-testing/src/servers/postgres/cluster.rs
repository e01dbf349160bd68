//! One server: its data, its port, and what can be done to it.

use super::installed::Installed;
use crate::servers::directory::{Directory, free_port};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a server is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// As by its administrator: connections end, everything is written.
    Fast,
    /// As by a crash: it is simply gone, and recovers when it starts again.
    Immediate,
}

/// A server. It ends, and its directory goes, with this value.
#[derive(Debug)]
pub struct Cluster {
    installed: Installed,
    directory: Directory,
    port: u16,
}

/// Ports that are tried, where somebody else was faster.
const TRIES: usize = 3;

impl Cluster {
    /// Makes a server in the system's directory for temporary files and starts it, with these lines in its configuration, such as
    /// `fsync = off`.
    ///
    /// # Errors
    /// PostgreSQL is not installed, or did not start: what it said.
    pub fn start(settings: &[&str]) -> Result<Self, String> {
        Self::start_in(&std::env::temp_dir(), settings)
    }

    /// As [`start`](Self::start), in another directory.
    ///
    /// # Errors
    /// As there.
    pub fn start_in(parent: &Path, settings: &[&str]) -> Result<Self, String> {
        let installed = Installed::find()?;
        let directory = installed.directory(parent)?;
        let mut initdb = installed.program("initdb")?;
        initdb.args(["-A", "trust", "-U", "postgres", "-N", "--no-locale", "-E", "UTF8", "-D"]);
        run("initdb", initdb.arg(directory.path().join("data")))?;
        let mut cluster = Self { installed, directory, port: 0 };
        cluster.configure(&["listen_addresses = '127.0.0.1'", "unix_socket_directories = ''"])?;
        cluster.configure(settings)?;
        cluster.start_somewhere()?;
        Ok(cluster)
    }

    /// A copy of this server that follows it.
    ///
    /// # Errors
    /// It could not be made.
    pub fn standby(&self) -> Result<Self, String> {
        self.standby_named("walreceiver")
    }

    /// The same, under a name that `synchronous_standby_names` can have in it.
    ///
    /// # Errors
    /// As there.
    pub fn standby_named(&self, name: &str) -> Result<Self, String> {
        let parent = self.directory.path().parent().unwrap_or(Path::new("/"));
        let directory = self.installed.directory(parent)?;
        let mut copy = self.program("pg_basebackup")?;
        copy.args(["-R", "-X", "stream", "-c", "fast", "-D"]);
        run("pg_basebackup", copy.arg(directory.path().join("data")))?;
        let mut standby = Self { installed: self.installed.clone(), directory, port: 0 };
        standby.configure(&[&format!("cluster_name = '{name}'")])?;
        standby.start_somewhere()?;
        Ok(standby)
    }

    /// Makes it a standby from the next start on: it changes nothing any more, until it is [promoted](Self::promote).
    ///
    /// # Errors
    /// The file that says so could not be written.
    pub fn demote(&self) -> Result<(), String> {
        let signal = self.data().join("standby.signal");
        fs::write(&signal, "").map_err(|error| format!("{}: {error}", signal.display()))?;
        // The server removes it when it is promoted.
        self.installed.hand_over(&signal)
    }

    /// Makes a standby a server that can be written to.
    ///
    /// # Errors
    /// It was none, or did not manage.
    pub fn promote(&self) -> Result<(), String> {
        self.control(&["promote", "-w"])
    }

    /// Stops the server. Once this returns, it is gone.
    ///
    /// # Errors
    /// It did not run, or did not stop.
    pub fn stop(&self, how: Stop) -> Result<(), String> {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.control(&["stop", "-w", "-m", mode])
    }

    /// Starts it at the same address after it was stopped. Once this returns, it answers.
    ///
    /// # Errors
    /// It did not start: what it said.
    pub fn start_again(&self) -> Result<(), String> {
        let log = self.directory.path().join("postgres.log");
        let log = log.to_str().ok_or("the directory's name is not UTF-8")?;
        self.control(&["start", "-w", "-t", "60", "-l", log])
            .map_err(|error| format!("{error}; its log: {}", fs::read_to_string(log).unwrap_or_default()))
    }

    /// Adds lines to the configuration, for the next start.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn configure(&self, settings: &[&str]) -> Result<(), String> {
        let path = self.data().join("postgresql.conf");
        let lines: String = settings.iter().map(|setting| format!("{setting}\n")).collect();
        let written =
            OpenOptions::new().append(true).open(&path).and_then(|mut file| file.write_all(lines.as_bytes()));
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The address of one of its databases. `postgres` is always there.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port that it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it lives. A process that leaves its id in a file `NAME.pid` here is ended with the server.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The programs that it runs by.
    #[must_use]
    pub fn installed(&self) -> &Installed {
        &self.installed
    }

    /// A command that runs one of PostgreSQL's programs, such as `psql`, against this server.
    ///
    /// # Errors
    /// This installation does not have it.
    pub fn program(&self, name: &str) -> Result<Command, String> {
        let mut command = self.installed.program(name)?;
        command.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string()).env("PGUSER", "postgres");
        Ok(command)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn start_somewhere(&mut self) -> Result<(), String> {
        let mut started = Ok(());
        for _ in 0..TRIES {
            self.port = free_port()?;
            self.configure(&[&format!("port = {}", self.port)])?;
            started = self.start_again();
            if started.is_ok() {
                break;
            }
        }
        started
    }

    fn control(&self, arguments: &[&str]) -> Result<(), String> {
        let mut control = self.installed.program("pg_ctl")?;
        run("pg_ctl", control.arg("-D").arg(self.data()).args(arguments))
    }
}

fn run(name: &str, command: &mut Command) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("{name} could not be started: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{name} failed ({}): {}", done.status, String::from_utf8_lossy(&done.stderr).trim()))
}
