//! What contenders stand on: the service behind the proxies, PostgreSQL and Redis. All of it private, and durable.

use crate::running::Running;
use semel_benches::held::Gate;
use semel_benches::load::HELD;
use semel_benches::payments::ANSWER;
use semel_testing::servers::{Cluster, Directory, free_port};
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::runtime::Runtime;

/// `fsync` is on by default. No checkpoint falls on one side and not on the other.
const POSTGRES: [&str; 4] =
    ["max_connections = 200", "max_wal_size = 8GB", "checkpoint_timeout = 1h", "shared_buffers = 512MB"];

pub(crate) struct Stage {
    /// Where requests are held that are to be under way for a while.
    pub(crate) gate: Gate,
    pub(crate) holder: SocketAddr,
    /// The service: it answers at once, whatever is asked.
    pub(crate) service: Server,
    pub(crate) postgres: Cluster,
    redis: Result<Server, String>,
    _holding: Runtime,
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
        let holding = Runtime::new()?;
        let gate = Gate::default();
        let holder = gate.serve(&holding)?;
        let service = start_nginx(&directory, holder)?;
        let redis = start_redis(&directory).map_err(|error| error.to_string());
        Ok(Self { gate, holder, service, postgres, redis, _holding: holding, directory })
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

fn start_nginx(directory: &Directory, holder: SocketAddr) -> Result<Server, Box<dyn Error>> {
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
             location {HELD} {{ proxy_pass http://{holder}; proxy_read_timeout 1h; }}
             location / {{ return 201 '{ANSWER}'; }} }} }}"
    );
    let file = directory.path().join("nginx.conf");
    std::fs::write(&file, configuration)?;
    let mut nginx = Command::new("nginx");
    nginx.arg("-c").arg(&file);
    let nginx = Running::start(directory, "nginx", nginx)?;
    Ok(Server { port, running: nginx.until_listening(port)? })
}

/// Every write is on disk before it is answered; what is written at once shares an fsync. The log is never rewritten meanwhile.
fn start_redis(directory: &Directory) -> Result<Server, Box<dyn Error>> {
    let port = free_port()?;
    let mut redis = Command::new("redis-server");
    redis.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--appendonly", "yes"]);
    redis.args(["--appendfsync", "always", "--auto-aof-rewrite-percentage", "0", "--dir"]);
    redis.arg(directory.path());
    let running = Running::start(directory, "redis", redis)?.until_listening(port)?;
    Ok(Server { port, running })
}
