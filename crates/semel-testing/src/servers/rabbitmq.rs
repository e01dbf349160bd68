//! RabbitMQ, and the port mapper that Erlang wants beside it.

use crate::servers::answer::wait_for;
use crate::servers::directory::{Directory, free_port};
use crate::servers::programs::{find, missing};
use crate::servers::variables::RABBITMQ_URL;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs};

/// A server. It ends, and its directory goes, with this value.
#[derive(Debug)]
pub struct RabbitMq {
    settings: Vec<(&'static str, String)>,
    port: u16,
    server: Child,
    mapper: Child,
    directory: Directory,
}

impl RabbitMq {
    /// Makes a server in the system's directory for temporary files, and starts it. That takes ten seconds: it is
    /// [`ready`](Self::ready) later.
    ///
    /// # Errors
    /// RabbitMQ is not installed, or cannot be started.
    pub fn begin() -> Result<Self, String> {
        let directory = Directory::new(&env::temp_dir(), "rabbitmq")?;
        let [port, distribution, mapping] = [free_port()?, free_port()?, free_port()?];
        let place = |name: &str| directory.path().join(name).display().to_string();
        let settings = vec![
            // The port mapper, which one node of Erlang would start for all nodes of the machine, and leave behind.
            ("ERL_EPMD_ADDRESS", "127.0.0.1".to_owned()),
            ("ERL_EPMD_PORT", mapping.to_string()),
            // Where the cookie is that nodes know each other by.
            ("HOME", place("")),
            ("RABBITMQ_NODENAME", "semel@localhost".to_owned()),
            ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".to_owned()),
            ("RABBITMQ_NODE_PORT", port.to_string()),
            ("RABBITMQ_DIST_PORT", distribution.to_string()),
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}".to_owned()),
            ("RABBITMQ_MNESIA_BASE", place("data")),
            ("RABBITMQ_LOG_BASE", place("log")),
            ("RABBITMQ_LOGS", place("rabbitmq.log")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", place("plugins")),
            // Files that are not there, in place of the machine's own.
            ("RABBITMQ_CONFIG_FILE", place("none")),
            ("RABBITMQ_CONF_ENV_FILE", place("none")),
            ("RABBITMQ_PID_FILE", place("rabbitmq.pid")),
            // Its script becomes the server then, in place of starting one: whoever kills it kills the server.
            ("RUNNING_UNDER_SYSTEMD", "true".to_owned()),
        ];
        let mapper = program(&epmd().ok_or_else(not_installed)?, &settings)
            .args(["-address", "127.0.0.1", "-port"])
            .arg(mapping.to_string())
            .spawn()
            .map_err(|error| format!("epmd could not be started: {error}"))?;
        let told = fs::write(directory.path().join("epmd.pid"), mapper.id().to_string());
        let server = told.map_err(|error| error.to_string()).and_then(|()| run(&settings));
        match server {
            Ok(server) => Ok(Self { settings, port, server, mapper, directory }),
            Err(error) => {
                end(mapper);
                Err(error)
            }
        }
    }

    /// Waits until it answers.
    ///
    /// # Errors
    /// It did not start: what it said.
    pub fn ready(&mut self) -> Result<(), String> {
        let log = self.directory.path().join("rabbitmq.log");
        // The protocol's greeting; the answer is a frame of kind 1 on channel 0.
        wait_for(&mut self.server, self.port, b"AMQP\0\0\x09\x01", &[1, 0, 0], &log)
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// Kills it, as a crash of the process would. Once this returns, it is gone.
    ///
    /// # Errors
    /// It could not be killed.
    pub fn kill(&mut self) -> Result<(), String> {
        self.server.kill().and_then(|()| self.server.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Starts it at the same address with what it had on disk. It is [`ready`](Self::ready) later.
    ///
    /// # Errors
    /// It could not be started.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.server = run(&self.settings)?;
        Ok(())
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        let _gone = self.kill();
        let _gone = self.mapper.kill().and_then(|()| self.mapper.wait());
    }
}

fn end(mut child: Child) {
    let _gone = child.kill().and_then(|()| child.wait());
}

fn run(settings: &[(&'static str, String)]) -> Result<Child, String> {
    let server = rabbitmq_server().ok_or_else(not_installed)?;
    let started = program(&server, settings).spawn();
    started.map_err(|error| format!("{} could not be started: {error}", server.display()))
}

fn not_installed() -> String {
    missing("RabbitMQ (rabbitmq-server, epmd)", RABBITMQ_URL)
}

fn program(path: &Path, settings: &[(&'static str, String)]) -> Command {
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(settings.iter().map(|(name, value)| (name, value))).current_dir("/");
    command
}

/// The server's own script, where Debian keeps it or the search path leads to. Debian's wrapper of the same name on the search path
/// would become another user first.
#[must_use]
pub fn rabbitmq_server() -> Option<PathBuf> {
    epmd()?;
    find("rabbitmq-server", &["/usr/lib/rabbitmq/bin"])
}

fn epmd() -> Option<PathBuf> {
    find("epmd", &[])
}
