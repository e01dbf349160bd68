//! A private PostgreSQL for the tests, and a PgBouncer before it: in a temporary directory, on free ports, gone afterwards.
//!
//! Never a server that happens to run. Whoever has one for the purpose names it in `SEMEL_TEST_POSTGRES_URL`, with a PgBouncer in
//! transaction mode before it in `SEMEL_TEST_PGBOUNCER_URL`. Tests that stop or crash a server start their own in either case.

use semel_testing::servers::{Cluster, POSTGRES_BIN, free_port, search_path};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

pub(crate) const POSTGRES_URL: &str = "SEMEL_TEST_POSTGRES_URL";
pub(crate) const PGBOUNCER_URL: &str = "SEMEL_TEST_PGBOUNCER_URL";

/// How long PgBouncer may take to answer for the first time, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Room for many tests at once, and no checkpoint in their way.
const SETTINGS: [&str; 3] = ["max_connections = 300", "max_wal_size = 4GB", "checkpoint_timeout = 1h"];

/// Whether the tests have been given servers.
pub(crate) fn given() -> bool {
    env::var_os(POSTGRES_URL).is_some()
}

/// PostgreSQL and PgBouncer, for as long as this lives.
pub(crate) struct Servers {
    urls: [String; 2],
    bin: String,
    /// None where they were given.
    _cluster: Option<Cluster>,
}

impl Servers {
    /// Those that were given, or new ones.
    pub(crate) fn start() -> Result<Self, String> {
        if let Ok(url) = env::var(POSTGRES_URL) {
            let pooled = env::var(PGBOUNCER_URL).map_err(|_| {
                format!(
                    "{POSTGRES_URL} is set and {PGBOUNCER_URL} is not: name a PgBouncer in transaction mode before the \
                     same server, or unset both and have private ones started"
                )
            })?;
            let bin = semel_testing::servers::Installed::find()?.bin().display().to_string();
            return Ok(Self { urls: [url, pooled], bin, _cluster: None });
        }
        let cluster = Cluster::start(&SETTINGS)?;
        let pooled = format!("postgres://postgres@127.0.0.1:{}/postgres", start_pgbouncer(&cluster)?);
        let bin = cluster.installed().bin().display().to_string();
        Ok(Self { urls: [cluster.url("postgres"), pooled], bin, _cluster: Some(cluster) })
    }

    /// What the tests are told.
    pub(crate) fn settings(&self) -> [(&'static str, String); 3] {
        let [url, pooled] = self.urls.clone();
        [(POSTGRES_URL, url), (PGBOUNCER_URL, pooled), (POSTGRES_BIN, self.bin.clone())]
    }
}

/// Starts one before the server, which ends with it; the port that it listens on.
fn start_pgbouncer(cluster: &Cluster) -> Result<u16, String> {
    let program = pgbouncer().ok_or("pgbouncer is not to be found")?;
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
        thread::sleep(Duration::from_millis(50));
    }
    Ok(port)
}

fn answers(cluster: &Cluster, port: u16) -> Result<bool, String> {
    let mut asking = cluster.program("pg_isready")?;
    asking.args(["-q", "-d", "postgres", "-p"]).arg(port.to_string());
    Ok(asking.status().is_ok_and(|status| status.success()))
}

/// Debian keeps it where only root looks.
pub(crate) fn pgbouncer() -> Option<PathBuf> {
    let directories = search_path().into_iter().chain([PathBuf::from("/usr/sbin")]);
    directories.map(|directory| directory.join("pgbouncer")).find(|program| program.is_file())
}
