//! What contenders stand on: the service behind the proxies, PostgreSQL and Redis. All of it private, and durable.

use crate::running::Running;
use semel_benches::payments::ANSWER;
use semel_private_postgres::{Cluster, Directory, free_port};
use std::error::Error;
use std::path::Path;
use std::process::Command;

/// `fsync` is on by default. No checkpoint falls on one side and not on the other.
const POSTGRES: [&str; 4] =
    ["max_connections = 200", "max_wal_size = 8GB", "checkpoint_timeout = 1h", "shared_buffers = 512MB"];

pub(crate) struct Stage {
    /// The service: it answers at once, whatever is asked.
    pub(crate) service: Server,
    pub(crate) postgres: Cluster,
    redis: Result<Server, String>,
    // After what runs in it.
    pub(crate) directory: Directory,
}

/// A server and where it listens.
pub(crate) struct Server {
    pub(crate) port: u16,
    running: Running,
}

impl Server {
    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }
}

impl Stage {
    /// In a directory on the disk that is measured.
    pub(crate) fn set(parent: &Path) -> Result<Self, Box<dyn Error>> {
        let directory = Directory::new(parent, "peers")?;
        let postgres = Cluster::start_in(parent, &POSTGRES)?;
        for database in ["gateway", "layer", "textbook", "dbos"] {
            let mut creating = postgres.program("createdb")?;
            if !creating.arg(database).status()?.success() {
                return Err(format!("the database {database} could not be made").into());
            }
        }
        let service = start_nginx(&directory)?;
        let redis = start_redis(&directory).map_err(|error| error.to_string());
        Ok(Self { service, postgres, redis, directory })
    }

    /// Redis, if there is one.
    pub(crate) fn redis(&self) -> Result<&Server, String> {
        self.redis.as_ref().map_err(Clone::clone)
    }

    /// The number of the process that all of PostgreSQL's descend from.
    pub(crate) fn postgres_id(&self) -> Result<u32, Box<dyn Error>> {
        let file = self.postgres.directory().join("data/postmaster.pid");
        let said = std::fs::read_to_string(&file)?;
        Ok(said.lines().next().unwrap_or_default().trim().parse()?)
    }
}

fn start_nginx(directory: &Directory) -> Result<Server, Box<dyn Error>> {
    let port = free_port()?;
    let place = directory.path().display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {place}/{kind};"))
        .join(" ");
    let configuration = format!(
        "worker_processes auto; daemon off; pid {place}/nginx-master.pid; error_log {place}/nginx-errors.log;
         events {{ worker_connections 4096; }}
         http {{ access_log off; keepalive_requests 1000000000; {temporary}
           server {{ listen 127.0.0.1:{port} backlog=1024; default_type application/json;
             location / {{ return 201 '{ANSWER}'; }} }} }}"
    );
    let file = directory.path().join("nginx.conf");
    std::fs::write(&file, configuration)?;
    let nginx = Running::start(directory, "nginx", Command::new("nginx").arg("-c").arg(&file))?;
    Ok(Server { port, running: nginx.until_listening(port)? })
}

/// Every write is on disk before it is answered; what is written at once shares an fsync. The log is never rewritten meanwhile.
fn start_redis(directory: &Directory) -> Result<Server, Box<dyn Error>> {
    let port = free_port()?;
    let mut redis = Command::new("redis-server");
    redis.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "yes"]);
    redis.args(["--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", "--dir"]);
    redis.arg(directory.path());
    let running = Running::start(directory, "redis", &mut redis)?.until_listening(port)?;
    Ok(Server { port, running })
}
