//! The processes: a provider with its ledger, shops, gateways before them, a worker, and a database.

use crate::disk::Disk;
use crate::inside::Inside;
use crate::plan::{BRIEF, Window};
use crate::proxy::Proxy;
use crate::scene::Scene;
use semel_private_postgres::{Cluster, free_port};
use std::error::Error;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// How long an owner that says nothing is believed to be at work.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long the gateway waits for the shop.
const TIMEOUT: &str = "1500ms";

/// What the gateways remember in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum)]
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
    /// Another build of the same.
    other_program: Option<PathBuf>,
    arguments: Vec<String>,
    /// What it is always started with.
    environment: Vec<(String, String)>,
    pub(crate) log: PathBuf,
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
            other_program: None,
            environment: Vec::new(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            log: log_directory.join(format!("{name}.log")),
            listens,
            child: Mutex::new(None),
        }
    }

    /// Starts it, and waits until it listens. Returns at once if it runs.
    pub(crate) async fn start(&self) -> Outcome<()> {
        self.start_with(&self.program, &[]).await
    }

    /// The same, by the other build if there is one.
    pub(crate) async fn start_other(&self) -> Outcome<()> {
        self.start_with(self.other_program.as_ref().unwrap_or(&self.program), &[]).await
    }

    /// Starts it on a machine whose clock is off by this much, such as `+5m`.
    pub(crate) async fn start_with_clock(&self, off: &str) -> Outcome<()> {
        let library = faketime().await?;
        let settings = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME", off),
            // Timers run as always: it is the time of day that is wrong.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        self.start_with(&self.program, &settings).await
    }

    async fn start_with(&self, program: &Path, settings: &[(&str, &str)]) -> Outcome<()> {
        let mut child = self.child.lock().await;
        for _ in 0..40 {
            if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
                return Ok(());
            }
            let child = child.insert(self.spawn(program, settings)?);
            if self.is_ready(child, None).await {
                return Ok(());
            }
            // It has ended: its store may be down. It is started again, as a supervisor would.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Err(format!("{} does not start: see {}", self.name, self.log.display()).into())
    }

    /// Starts it with these settings, and does not mind if it never gets as far as to listen.
    pub(crate) async fn try_with(&self, settings: &[(&str, &str)], patience: Duration) -> Outcome<()> {
        let mut child = self.child.lock().await;
        if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Ok(());
        }
        let child = child.insert(self.spawn(&self.program, settings)?);
        self.is_ready(child, Some(Instant::now() + patience)).await;
        Ok(())
    }

    /// Starts it and kills it before it is ready, or just as it is.
    pub(crate) async fn start_in_vain(&self, life: Duration) -> Outcome<()> {
        let mut child = self.child.lock().await;
        if child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
            return Ok(());
        }
        let child = child.insert(self.spawn(&self.program, &[])?);
        tokio::time::sleep(life).await;
        child.kill().await?;
        Ok(())
    }

    fn spawn(&self, program: &Path, settings: &[(&str, &str)]) -> Outcome<Child> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new(program);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command.kill_on_drop(true).spawn()?)
    }

    /// Waits until it listens; false: it has ended, or it takes too long.
    async fn is_ready(&self, child: &mut Child, until: Option<Instant>) -> bool {
        let Some(address) = self.listens else { return true };
        while matches!(child.try_wait(), Ok(None)) && until.is_none_or(|until| Instant::now() < until) {
            if TcpStream::connect(address).await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// `kill -9`: no farewell, no clearing up.
    pub(crate) async fn kill(&self) -> Outcome<()> {
        self.kill_and(|| Ok(())).await
    }

    /// The same, and does this before anybody can start it again.
    pub(crate) async fn kill_and(&self, then: impl FnOnce() -> Outcome<()>) -> Outcome<()> {
        let mut place = self.child.lock().await;
        if let Some(mut child) = place.take() {
            let id = child.id();
            child.kill().await?;
            id.into_iter().for_each(clear_after_faketime);
        }
        then()
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
    pub(crate) worker: Option<Process>,
    pub(crate) admins_at: Vec<SocketAddr>,
    pub(crate) database: Option<Database>,
    /// Where the file is, if the store is one.
    pub(crate) disk: Option<Disk>,
    pub(crate) scene: Scene,
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

/// What is to be started, and where.
pub(crate) struct Staging<'a> {
    pub(crate) store: StoreKind,
    pub(crate) scene: Scene,
    pub(crate) seed: u64,
    pub(crate) directory: &'a Path,
    /// Another build of `semel`.
    pub(crate) other_build: Option<&'a Path>,
}

impl Processes {
    pub(crate) async fn start(staging: &Staging<'_>) -> Outcome<Self> {
        let &Staging { store, scene, seed, directory, other_build } = staging;
        let (database, disk) = match store {
            StoreKind::Sqlite => (None, Some(Disk::new(scene, seed, directory)?)),
            StoreKind::Postgres => (Some(Database::start(scene.gateways()).await?), None),
        };
        let semel = beside("semel")?;
        let provider_at = free_address()?;
        let provider = provider(provider_at, seed, directory)?;
        let (mut shops, mut gateways, mut gateways_at, mut admins_at) = (vec![], vec![], vec![], vec![]);
        for number in 0..scene.gateways() {
            let (shop_at, gateway_at, admin_at) = (free_address()?, free_address()?, free_address()?);
            let to = provider_at.to_string();
            shops.push(Process::new(
                &format!("shop-{number}"),
                &std::env::current_exe()?,
                directory,
                Some(shop_at),
                &["shop", "--listen", &shop_at.to_string(), "--provider", &to],
            ));
            let store = match (&database, &disk) {
                (Some(database), _) => database.url(number),
                (_, Some(disk)) => format!("sqlite:{}", disk.file().display()),
                _ => return Err("there is no store".into()),
            };
            let file = directory.join(format!("gateway-{number}.toml"));
            let sealed = scene == Scene::Sealed;
            std::fs::write(&file, configuration(shop_at, gateway_at, admin_at, &store, sealed))?;
            let file = file.display().to_string();
            let mut gateway = Process::new(
                &format!("gateway-{number}"),
                &semel,
                directory,
                Some(gateway_at),
                &["gateway", "--config", &file],
            );
            gateway.environment = disk.as_ref().map(Disk::environment).unwrap_or_default();
            gateway.other_program = other_build.map(Path::to_owned);
            gateways.push(gateway);
            gateways_at.push(gateway_at);
            admins_at.push(admin_at);
        }
        let file = directory.join("gateway-0.toml").display().to_string();
        let worker = Process::new("worker", &semel, directory, None, &["worker", "--config", &file]);
        let this = Self {
            provider,
            provider_at,
            shops,
            gateways,
            gateways_at,
            worker: scene.has_worker().then_some(worker),
            admins_at,
            database,
            disk,
            scene,
        };
        for process in this.all() {
            process.start().await?;
        }
        Ok(this)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> {
        let first = std::iter::once(&self.provider).chain(&self.shops);
        first.chain(&self.gateways).chain(&self.worker)
    }

    /// The store, past Semel.
    pub(crate) fn inside(&self) -> Inside {
        match (&self.database, &self.disk) {
            (Some(database), _) => Inside::Postgres(database.cluster.url("postgres")),
            (None, disk) => Inside::Sqlite(disk.as_ref().map(Disk::file).unwrap_or_default()),
        }
    }
}

/// A program that was built along with this one.
fn beside(name: &str) -> Outcome<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    if !program.exists() {
        let program = program.display();
        return Err(format!("{program} is not there: `cargo xtask prove campaign` builds it").into());
    }
    Ok(program)
}

fn provider(at: SocketAddr, seed: u64, directory: &Path) -> Outcome<Process> {
    let ledger = directory.join("ledger").display().to_string();
    let (listen, seed) = (at.to_string(), seed.to_string());
    let arguments = [
        ["--listen", &listen],
        ["--ledger", &ledger],
        ["--misbehave", MISBEHAVIOUR],
        ["--seed", &seed],
        ["--stall", "3s"],
    ];
    let arguments = [&["--no-deduplication"], arguments.as_flattened()].concat();
    Ok(Process::new("provider", &beside("payment-provider")?, directory, Some(at), &arguments))
}

impl Database {
    async fn start(gateways: usize) -> Outcome<Self> {
        let cluster = Cluster::start(&["fsync = on"])?;
        let mut networks = Vec::new();
        for _ in 0..gateways {
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

fn configuration(
    shop: SocketAddr,
    listen: SocketAddr,
    admin: SocketAddr,
    store: &str,
    sealed: bool,
) -> String {
    let mut text = format!(
        r#"upstream = "http://{shop}"
listen = "{listen}"
store = "{store}"

[admin]
listen = "{admin}"

[scope]
tenant = ["header:x-account-id"]

# More than anybody has: the keys are counted all the same.
[quota]
live_keys = 100000000
"#
    );
    if sealed {
        let key = "c2VhbGVkIGluIHRoZSBmYXVsdCBjYW1wYWlnbiBvbmU";
        text.push_str(&format!("\n[encryption]\nkeys = [{{ id = \"campaign\", key = \"{key}\" }}]\n"));
    }
    let (lease, brief) = (LEASE.as_millis(), BRIEF.as_millis());
    for (window, operation, retention) in
        [(Window::Day, "pay", "24h".to_owned()), (Window::Brief, "pay_briefly", format!("{brief}ms"))]
    {
        let path = window.path();
        text.push_str(&format!(
            r#"
[[route]]
operation = "{operation}"
match = "POST {path}"
key = "required"
lease = "{lease}ms"
timeout = "{TIMEOUT}"
retention = "{retention}"
body_retention = "{retention}"

[route.reconcile]
poll = "http://{shop}/operations/{{operation_id}}"
every = "200ms"
attempts = 60
absence_is_proof = true
"#
        ));
    }
    text
}

/// A process with a wrong clock that is killed leaves shared memory behind, by its number, and no other one of that number gets past it.
fn clear_after_faketime(id: u32) {
    for left in [format!("/dev/shm/sem.faketime_sem_{id}"), format!("/dev/shm/faketime_shm_{id}")] {
        let _none_mostly = std::fs::remove_file(left);
    }
}

/// The library that `faketime` puts before the system's. Shared memory that a killed process left behind may be in its way: the next try has
/// another number.
async fn faketime() -> Outcome<String> {
    let mut said = String::new();
    for _ in 0..10 {
        let told = Command::new("faketime").args(["-m", "-f", "+0", "printenv", "LD_PRELOAD"]).output().await;
        let told =
            told.map_err(|error| format!("faketime cannot be run ({error}): install it (Debian: faketime)"))?;
        if told.status.success() {
            return Ok(String::from_utf8(told.stdout)?.trim().to_owned());
        }
        said = String::from_utf8_lossy(&told.stderr).into_owned();
    }
    Err(format!("faketime does not work: {said}").into())
}
