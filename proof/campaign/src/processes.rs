//! The processes: a provider with its ledger, shops, gateways in front of them, a worker, and a database.

use crate::cache::{Cache, CacheKind};
use crate::clock::Clock;
use crate::config::{Changeable, Site, WEBHOOK_SECRET, configuration};
use crate::disk::Disk;
use crate::inside::Inside;
use crate::outcome::Outcome;
use crate::process::Process;
use crate::profile::Profile;
use crate::proxy::Proxy;
use crate::scene::Scene;
use crate::server_clock::ServerClock;
use crate::store::StoreKind;
use semel_testing::servers::{Cluster, free_port};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::PoisonError;
use tokio::process::Command;
use tokio::sync::Mutex;

/// Everything that runs.
pub(crate) struct Processes {
    pub(crate) provider: Process,
    pub(crate) provider_at: SocketAddr,
    /// Services without protection, one behind each gateway.
    pub(crate) shops: Vec<Process>,
    /// Whatever clients come to: gateways, or services with Semel's layer.
    pub(crate) gateways: Vec<Process>,
    pub(crate) worker: Option<Process>,
    pub(crate) sites: Vec<Site>,
    pub(crate) database: Option<Database>,
    /// What is in front of the gateways' store.
    pub(crate) cache: Option<Cache>,
    /// Where the file is, if the store is one.
    pub(crate) disk: Option<Disk>,
    /// Where the clocks of the gateways' machines step.
    pub(crate) clock: Option<Clock>,
    pub(crate) scene: Scene,
    pub(crate) profile: Profile,
    /// What the gateways' files say; held by whoever changes them.
    pub(crate) changing: Mutex<Changeable>,
    pub(crate) semel: PathBuf,
    directory: PathBuf,
}

/// The server, and the network of each gateway to it.
pub(crate) struct Database {
    pub(crate) cluster: Cluster,
    pub(crate) networks: Vec<Proxy>,
    /// Held by whoever stops and starts the server.
    pub(crate) crashing: Mutex<()>,
    /// Where the server's clock steps.
    pub(crate) clock: Option<ServerClock>,
}

/// What a provider does on a bad day, all the time.
const MISBEHAVIOUR: &str = "drop-after=0.02,error-after=0.02,stall-after=0.01,stall-before=0.01,decline=0.03,reject=0.02,drop-before=0.02";

/// An address that nobody has, and no other round of this campaign gets: a process that is killed has to find it free again.
fn free_address() -> Outcome<SocketAddr> {
    static TAKEN: std::sync::Mutex<BTreeSet<u16>> = std::sync::Mutex::new(BTreeSet::new());
    loop {
        let port = free_port()?;
        if TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
        }
    }
}

/// What is to be started, and where.
pub(crate) struct Staging<'a> {
    pub(crate) store: StoreKind,
    pub(crate) scene: Scene,
    pub(crate) profile: Profile,
    pub(crate) seed: u64,
    pub(crate) directory: &'a Path,
    pub(crate) redis: Option<CacheKind>,
    /// Another build of `semel`.
    pub(crate) other_build: Option<&'a Path>,
}

impl Processes {
    pub(crate) async fn start(staging: &Staging<'_>) -> Outcome<Self> {
        let &Staging { store, scene, profile, seed, directory, redis, other_build } = staging;
        let (database, disk) = match store {
            StoreKind::Sqlite => (None, Some(Disk::new(scene, seed, directory)?)),
            StoreKind::Postgres => (Some(Database::start(scene).await?), None),
        };
        let clock = if scene == Scene::SteppingClock { Some(Clock::new(directory).await?) } else { None };
        // Services with the layer have none.
        let redis = redis.filter(|_| !profile.has_no_gateway());
        let cache = tokio::task::block_in_place(|| redis.map(Cache::start).transpose())?;
        let mut sites = Vec::new();
        for number in 0..scene.gateways() {
            let store = match (&database, &disk) {
                (Some(database), _) => database.url(number),
                (_, Some(disk)) => format!("sqlite:{}", disk.file().display()),
                _ => return Err("there is no store".into()),
            };
            let (shop, listen, admin) = (free_address()?, free_address()?, free_address()?);
            let cache = cache.as_ref().map(|cache| cache.url().to_owned());
            sites.push(Site { shop, listen, admin, store, cache });
        }
        let provider_at = free_address()?;
        let semel = beside("semel")?;
        let file = directory.join("gateway-0.toml").display().to_string();
        let worker = Process::new("worker", &semel, directory, None, &["worker", "--config", &file]);
        let mut this = Self {
            provider: provider(provider_at, staging, &sites)?,
            provider_at,
            shops: Vec::new(),
            gateways: Vec::new(),
            worker: scene.has_worker(profile).then_some(worker),
            sites,
            database,
            cache,
            disk,
            clock,
            scene,
            profile,
            changing: Mutex::new(Changeable::at_first(profile, scene)),
            semel,
            directory: directory.to_owned(),
        };
        this.configure(&Changeable::at_first(profile, scene))?;
        for number in 0..this.sites.len() {
            let mut gateway =
                if profile.has_no_gateway() { this.layered(number)? } else { this.gateway(number) };
            let disk = this.disk.iter().flat_map(Disk::environment);
            let clock = this.clock.iter().flat_map(Clock::environment);
            gateway.environment = disk.chain(clock).collect();
            gateway.other_program = other_build.filter(|_| !profile.has_no_gateway()).map(Path::to_owned);
            this.gateways.push(gateway);
            if !profile.has_no_gateway() {
                this.shops.push(this.shop(number)?);
            }
        }
        for process in this.all() {
            process.start().await?;
        }
        Ok(this)
    }

    /// Where all services note what they start.
    pub(crate) fn starts(&self) -> PathBuf {
        self.directory.join("starts")
    }

    /// The file that a gateway is configured by.
    pub(crate) fn file(&self, gateway: usize) -> PathBuf {
        self.directory.join(format!("gateway-{gateway}.toml"))
    }

    /// Writes every gateway's file.
    pub(crate) fn configure(&self, changeable: &Changeable) -> Outcome<()> {
        for (number, site) in self.sites.iter().enumerate() {
            // In one go: a gateway may be starting.
            let (file, next) = (self.file(number), self.directory.join(format!("next-{number}.toml")));
            std::fs::write(&next, configuration(site, self.profile, changeable))?;
            std::fs::rename(next, file)?;
        }
        Ok(())
    }

    fn gateway(&self, number: usize) -> Process {
        let (name, file) = (format!("gateway-{number}"), self.file(number).display().to_string());
        let listens = Some(self.sites[number].listen);
        Process::new(&name, &self.semel, &self.directory, listens, &["gateway", "--config", &file])
    }

    /// A service behind a gateway.
    fn shop(&self, number: usize) -> Outcome<Process> {
        let (at, to) = (self.sites[number].shop, self.provider_at.to_string());
        let (listen, starts) = (at.to_string(), self.starts().display().to_string());
        let mut arguments = vec!["shop", "--listen", &listen, "--provider", &to, "--starts", &starts];
        let look_at = self.look_at();
        arguments.extend(look_at.iter().flat_map(|store| ["--look-at", store]));
        if self.profile == Profile::WebhooksById {
            arguments.push("--webhooks");
        }
        let name = format!("shop-{number}");
        Ok(Process::new(&name, &std::env::current_exe()?, &self.directory, Some(at), &arguments))
    }

    /// A service with Semel's layer, and no gateway.
    fn layered(&self, number: usize) -> Outcome<Process> {
        let Site { listen: at, store, .. } = &self.sites[number];
        let (listen, starts) = (at.to_string(), self.starts().display().to_string());
        let mut arguments = vec!["layered", "--listen", &listen, "--store", store, "--starts", &starts];
        let look_at = self.look_at();
        arguments.extend(look_at.iter().flat_map(|store| ["--look-at", store]));
        let name = format!("layered-{number}");
        Ok(Process::new(&name, &std::env::current_exe()?, &self.directory, Some(*at), &arguments))
    }

    /// Where services look whether what they start is reserved: past Semel, and past the network that can fail.
    fn look_at(&self) -> Option<String> {
        match (&self.database, &self.disk) {
            (Some(database), _) => Some(database.cluster.url("postgres")),
            // The file is exchanged when the power is cut, and whoever has it open then is in the way.
            (None, Some(disk)) if self.scene != Scene::PowerCuts => {
                Some(format!("sqlite:{}", disk.file().display()))
            }
            _ => None,
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Process> {
        let provider = (!self.profile.has_no_gateway()).then_some(&self.provider);
        provider.into_iter().chain(&self.shops).chain(&self.gateways).chain(&self.worker)
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

fn provider(at: SocketAddr, staging: &Staging<'_>, sites: &[Site]) -> Outcome<Process> {
    let &Staging { profile, seed, directory, .. } = staging;
    let ledger = directory.join("ledger").display().to_string();
    let (listen, seed) = (at.to_string(), seed.to_string());
    let mut arguments = [
        ["--listen", &listen],
        ["--ledger", &ledger],
        ["--misbehave", MISBEHAVIOUR],
        ["--seed", &seed],
        ["--stall", "3s"],
    ]
    .concat();
    // Whoever declares that work may be resumed has a provider that carries one operation out once.
    if profile != Profile::Resume {
        arguments.push("--no-deduplication");
    }
    let told = sites.first().map(|site| format!("http://{}/v1/webhooks/provider", site.admin));
    if let (Profile::WebhooksById, Some(told)) = (profile, &told) {
        arguments.extend(["--webhook-url", told, "--webhook-secret", WEBHOOK_SECRET]);
        arguments.extend([
            "--webhook-duplicate",
            "0.3",
            "--webhook-delay",
            "1500ms",
            "--webhook-shuffle",
            "4",
        ]);
    }
    Ok(Process::new("provider", &beside("payment-provider")?, directory, Some(at), &arguments))
}

impl Database {
    async fn start(scene: Scene) -> Outcome<Self> {
        let cluster = Cluster::start(&["fsync = on"])?;
        let clock = match scene {
            Scene::SteppingClock => Some(ServerClock::of(cluster.url("postgres")).await?),
            _ => None,
        };
        let mut networks = Vec::new();
        for _ in 0..scene.gateways() {
            networks.push(Proxy::before(SocketAddr::from(([127, 0, 0, 1], cluster.port()))).await?);
        }
        Ok(Self { cluster, networks, crashing: Mutex::default(), clock })
    }

    /// Its address by way of a gateway's network.
    fn url(&self, gateway: usize) -> String {
        let (direct, by_way) = (self.cluster.port(), self.networks[gateway].address.port());
        let url = self.cluster.url("postgres").replace(&format!(":{direct}/"), &format!(":{by_way}/"));
        if self.clock.is_some() { ServerClock::seen_by(&url) } else { url }
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
