//! PgBouncer in transaction mode, in front of a PostgreSQL server.

use super::cluster::Cluster;
use crate::servers::directory::free_port;
use crate::servers::programs::{find, missing};
use crate::servers::variables::PGBOUNCER_URL;
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take to answer for the first time, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A PgBouncer. It lives in its server's directory, and ends with the server.
#[derive(Debug)]
pub(crate) struct PgBouncer {
    port: u16,
}

impl PgBouncer {
    /// Starts one in front of the server. Once this returns, it answers.
    pub(crate) fn start(cluster: &Cluster) -> Result<Self, String> {
        let program = pgbouncer().ok_or_else(|| missing("PgBouncer", PGBOUNCER_URL))?;
        let (port, directory) = (free_port()?, cluster.directory());
        let place = directory.display();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = transaction\nmax_client_conn = 500\ndefault_pool_size = 10\nserver_idle_timeout = 5\n\
             logfile = {place}/pgbouncer.log\npidfile = {place}/pgbouncer.pid\nlog_connections = 0\nlog_disconnections = 0\n",
            cluster.port(),
        );
        let file = directory.join("pgbouncer.ini");
        fs::write(&file, settings).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut starting = cluster.installed().unprivileged(&program);
        let starting = starting.args(["-q", "-d"]).arg(&file).stdin(Stdio::null()).stdout(Stdio::null());
        let said = starting.output().map_err(|error| format!("pgbouncer could not be started: {error}"))?;
        let began = Instant::now();
        while !answers(cluster, port)? {
            if began.elapsed() > PATIENCE || !said.status.success() {
                let log = fs::read_to_string(directory.join("pgbouncer.log")).unwrap_or_default();
                return Err(format!("pgbouncer does not answer; its log: {log}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { port })
    }

    /// The address of the database `postgres` through it.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

fn answers(cluster: &Cluster, port: u16) -> Result<bool, String> {
    let mut asking = cluster.program("pg_isready")?;
    asking.args(["-q", "-d", "postgres", "-p"]).arg(port.to_string());
    Ok(asking.status().is_ok_and(|status| status.success()))
}

/// The program. Debian installs it where only root looks.
#[must_use]
pub fn pgbouncer() -> Option<PathBuf> {
    find("pgbouncer", &["/usr/sbin"])
}
