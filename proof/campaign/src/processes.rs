//! The processes: a provider with its ledger, two shops, two gateways before them, a worker, and a database.

use crate::proxy::Proxy;
use semel_private_postgres::{Cluster, free_port};
use std::error::Error;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How many gateways there are, each with a shop of its own.
pub(crate) const GATEWAYS: usize = 2;
/// How long an owner that says nothing is believed to be at work.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long the gateway waits for the shop.
const TIMEOUT: &str = "1500ms";

/// What the gateways remember in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum StoreKind {
    Sqlite,
    Postgres,
}

impl StoreKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

/// One process that is started again after every fault.
pub(crate) struct Process {
    pub(crate) name: String,
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    listens: Option<SocketAddr>,
    child: Mutex<Option<Child>>,
}

impl Process {
    fn new(
        name: &str,
        program: &Path,
        log_directory: &Path,
        listens: Option<SocketAddr>,
        arguments: &[&str],
    ) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            log: log_directory.join(format!("{name}.log")),
            listens,
            child: Mutex::new(None),
        }
    }

    /// Starts it, and waits until it listens. Returns at once if it runs.
    pub(crate) async fn start(&self) -> Outcome<()> {
        self.start_with(&[]).await
    }

    /// Starts it on a machine whose clock is off by this much, such as `+5m`.
    pub(crate) async fn start_with_clock(&self, off: &str) -> Outcome<()> {
        let told = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output().await;
        let told =
            told.map_err(|error| format!("faketime cannot be run ({error}): install it (Debian: faketime)"))?;
        let library = String::from_utf8(told.stdout)?;
        let settings = [
            ("LD_PRELOAD", library.trim()),
            ("FAKETIME", off),
            // Timers run as always: it is the time of day that is wrong.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        self.start_with(&settings).await
    }

    async fn start_with(&self, settings: &[(&str, &str)]) -> Outcome<()> {
        let mut child = self.child.lock().await;
        for _ in 0..20 {
            if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
                return Ok(());
            }
            let log = File::options().create(true).append(true).open(&self.log)?;
            let mut command = Command::new(&self.program);
            command
                .args(&self.arguments)
                .envs(settings.iter().copied())
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log);
            let child = child.insert(command.kill_on_drop(true).spawn()?);
            let Some(address) = self.listens else { return Ok(()) };
            while matches!(child.try_wait(), Ok(None)) {
                if TcpStream::connect(address).await.is_ok() {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // It has ended: its store may be down. It is started again, as a supervisor would.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(format!("{} does not start: see {}", self.name, self.log.display()).into())
    }

    /// `kill -9`: no farewell, no clearing up.
    pub(crate) async fn kill(&self) -> Outcome<()> {
        if let Some(mut child) = self.child.lock().await.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Stops it for `time`, and lets it go on as if nothing had been.
    pub(crate) async fn freeze(&self, time: Duration) -> Outcome<()> {
        let child = self.child.lock().await;
        let Some(id) = child.as_ref().and_then(Child::id) else { return Ok(()) };
        signal(id, "STOP").await?;
        tokio::time::sleep(time).await;
        signal(id, "CONT").await
    }

    /// Lets it go on, if it is frozen.
    pub(crate) async fn wake(&self) -> Outcome<()> {
        match self.child.lock().await.as_ref().and_then(Child::id) {
            Some(id) => signal(id, "CONT").await,
            None => Ok(()),
        }
    }

    /// Asks it to end, and waits until it has.
    pub(crate) async fn end(&self) -> Outcome<()> {
        let mut child = self.child.lock().await;
        if let Some(mut running) = child.take() {
            if let Some(id) = running.id() {
                signal(id, "TERM").await?;
            }
            running.wait().await?;
        }
        Ok(())
    }
}

async fn signal(id: u32, name: &str) -> Outcome<()> {
    Command::new("kill").args([format!("-{name}"), id.to_string()]).status().await?;
    Ok(())
}

/// Everything that runs.
pub(crate) struct Processes {
    pub(crate) provider: Process,
    pub(crate) provider_at: SocketAddr,
    pub(crate) shops: Vec<Process>,
    pub(crate) gateways: Vec<Process>,
    pub(crate) gateways_at: Vec<SocketAddr>,
    pub(crate) worker: Process,
    pub(crate) admin_at: SocketAddr,
    pub(crate) database: Option<Database>,
}

/// The server, and the network of each gateway before it.
pub(crate) struct Database {
    pub(crate) cluster: Cluster,
    pub(crate) networks: Vec<Proxy>,
    /// Held by whoever stops and starts the server.
    pub(crate) crashing: Mutex<()>,
}

/// What a provider does on a bad day, all the time.
const MISBEHAVIOUR: &str = "drop-after=0.02,error-after=0.02,stall-after=0.01,stall-before=0.01,decline=0.03,reject=0.02,drop-before=0.02";

fn free_address() -> Outcome<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

impl Processes {
    pub(crate) async fn start(kind: StoreKind, seed: u64, directory: &Path) -> Outcome<Self> {
        let beside = |name: &str| -> Outcome<PathBuf> {
            let program = std::env::current_exe()?.with_file_name(name);
            if !program.exists() {
                return Err(format!(
                    "{} is not there: `cargo xtask prove campaign` builds it",
                    program.display()
                )
                .into());
            }
            Ok(program)
        };
        let (semel, provider, shop) =
            (beside("semel")?, beside("payment-provider")?, std::env::current_exe()?);
        let database = match kind {
            StoreKind::Sqlite => None,
            StoreKind::Postgres => Some(Database::start().await?),
        };
        let provider_at = free_address()?;
        let ledger = directory.join("ledger");
        let provider = Process::new(
            "provider",
            &provider,
            directory,
            Some(provider_at),
            &[
                "--listen",
                &provider_at.to_string(),
                "--ledger",
                &ledger.display().to_string(),
                "--no-deduplication",
                "--misbehave",
                MISBEHAVIOUR,
                "--seed",
                &seed.to_string(),
                "--stall",
                "3s",
            ],
        );
        let (mut shops, mut gateways, mut gateways_at, mut admins) = (vec![], vec![], vec![], vec![]);
        for number in 0..GATEWAYS {
            let (shop_at, gateway_at, admin_at) = (free_address()?, free_address()?, free_address()?);
            let to = provider_at.to_string();
            shops.push(Process::new(
                &format!("shop-{number}"),
                &shop,
                directory,
                Some(shop_at),
                &["shop", "--listen", &shop_at.to_string(), "--provider", &to],
            ));
            let store = match &database {
                None => format!("sqlite:{}/semel.db", directory.display()),
                Some(database) => database.url(number),
            };
            let file = directory.join(format!("gateway-{number}.toml"));
            std::fs::write(&file, configuration(shop_at, gateway_at, admin_at, &store))?;
            gateways.push(Process::new(
                &format!("gateway-{number}"),
                &semel,
                directory,
                Some(gateway_at),
                &["gateway", "--config", &file.display().to_string()],
            ));
            gateways_at.push(gateway_at);
            admins.push(admin_at);
        }
        let file = directory.join("gateway-0.toml").display().to_string();
        let worker = Process::new("worker", &semel, directory, None, &["worker", "--config", &file]);
        let this = Self {
            provider,
            provider_at,
            shops,
            gateways,
            gateways_at,
            worker,
            admin_at: admins[0],
            database,
        };
        this.start_all().await?;
        Ok(this)
    }

    /// Starts whatever does not run.
    pub(crate) async fn start_all(&self) -> Outcome<()> {
        for process in self.all() {
            process.start().await?;
        }
        Ok(())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> {
        let first = std::iter::once(&self.provider).chain(&self.shops);
        first.chain(&self.gateways).chain(std::iter::once(&self.worker))
    }
}

impl Database {
    async fn start() -> Outcome<Self> {
        let cluster = Cluster::start(&["fsync = on"])?;
        let mut networks = Vec::new();
        for _ in 0..GATEWAYS {
            networks.push(Proxy::before(SocketAddr::from(([127, 0, 0, 1], cluster.port()))).await?);
        }
        Ok(Self { cluster, networks, crashing: Mutex::default() })
    }

    /// Its address by way of a gateway's network.
    fn url(&self, gateway: usize) -> String {
        let (direct, by_way) = (self.cluster.port(), self.networks[gateway].address.port());
        self.cluster.url("postgres").replace(&format!(":{direct}/"), &format!(":{by_way}/"))
    }

    /// Ends every connection from inside.
    pub(crate) async fn kill_backends(&self) -> Outcome<()> {
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        let mut psql = Command::from(self.cluster.program("psql")?);
        psql.args([&self.cluster.url("postgres"), "-qAtc", sql]);
        psql.stdout(Stdio::null()).stderr(Stdio::null()).status().await?;
        Ok(())
    }
}

fn configuration(shop: SocketAddr, listen: SocketAddr, admin: SocketAddr, store: &str) -> String {
    let lease = LEASE.as_millis();
    format!(
        r#"upstream = "http://{shop}"
listen = "{listen}"
store = "{store}"

[admin]
listen = "{admin}"

[scope]
tenant = ["header:x-account-id"]

[[route]]
operation = "pay"
match = "POST /payments"
key = "required"
lease = "{lease}ms"
timeout = "{TIMEOUT}"

[route.reconcile]
poll = "http://{shop}/operations/{{operation_id}}"
every = "200ms"
attempts = 60
absence_is_proof = true
"#
    )
}
