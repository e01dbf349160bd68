//! One campaign: clients and faults together, then healing, then everything asked for once more, then the judgement.

use crate::armed;
use crate::check::{self, Evidence, Judged};
use crate::client::{Call, call, send_and_hang_up};
use crate::faults::{Done, Fault, FaultLog, Rain};
use crate::fencing;
use crate::log::{Answer, Told};
use crate::plan::{Operation, Variant, operations};
use crate::processes::{Outcome, Processes, Staging, StoreKind};
use crate::progress::Progress;
use crate::scene::Scene;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a client waits for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client keeps asking while things go wrong, and how often.
const PERSISTENCE: Duration = Duration::from_secs(8);
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long an operation may take to settle once nothing goes wrong any more.
const HEALING: Duration = Duration::from_secs(300);
/// How many are asked for at once then. All at once would be a fault of its own on a slow machine: a store that is never done in time.
const ASKED_AT_ONCE: usize = 64;

/// One round: a part of a campaign that has processes, a store and a seed of its own.
pub(crate) struct Round<'a> {
    pub(crate) store: StoreKind,
    pub(crate) scene: Scene,
    pub(crate) seed: u64,
    pub(crate) operations: u32,
    /// How many operations are under way at once.
    pub(crate) concurrent: usize,
    /// One fault for so many operations, at most.
    pub(crate) per_fault: usize,
    /// Only these faults, if any are named.
    pub(crate) only: &'a [Fault],
    pub(crate) other_build: Option<&'a Path>,
}

/// What came out of a round.
pub(crate) struct Result {
    pub(crate) judged: Judged,
    pub(crate) done: Done,
    /// Fail points that went off.
    pub(crate) reached: BTreeSet<String>,
    /// Operations that had a definite answer before the faults ended.
    pub(crate) definite: usize,
    pub(crate) took: Duration,
}

struct Clients {
    processes: Processes,
    begun: Instant,
    told: Mutex<Vec<Told>>,
    under_way: Vec<AtomicUsize>,
    begun_operations: AtomicUsize,
    concurrent: usize,
}

/// What the provider did.
#[derive(Default)]
struct Ledger {
    /// How often each reference was charged.
    charged: BTreeMap<String, u32>,
    /// By which attempts of each operation, whose id is in hexadecimal digits alone.
    attempts: BTreeMap<String, Vec<i64>>,
}

impl Round<'_> {
    pub(crate) async fn run(&self, directory: &Path, progress: &Progress) -> Outcome<Result> {
        let staging = Staging {
            store: self.store,
            scene: self.scene,
            seed: self.seed,
            directory,
            other_build: self.other_build,
        };
        let processes = Processes::start(&staging).await?;
        let gateways = processes.gateways.len();
        let plan: Vec<_> =
            operations(self.seed, self.operations, gateways).into_iter().map(Arc::new).collect();
        let clients = Arc::new(Clients {
            under_way: (0..gateways).map(|_| AtomicUsize::new(0)).collect(),
            processes,
            begun: Instant::now(),
            told: Mutex::default(),
            begun_operations: AtomicUsize::new(0),
            concurrent: self.concurrent,
        });
        let faults = FaultLog::default();
        let inside = clients.processes.inside();
        let rain = Rain {
            processes: &clients.processes,
            inside: &inside,
            under_way: &clients.under_way,
            operations: &clients.begun_operations,
            per_fault: self.per_fault,
            only: self.only,
            seed: self.seed,
            begun: clients.begun,
            log: &faults,
        };
        tokio::select! {
            () = clients.send_all(&plan, progress) => {}
            ended = rain.fall() => ended?,
            () = progress.watch(|| faults.count()) => {}
        }
        let definite = check::definite(&plan, &clients.told());
        progress.healing();
        clients.heal().await?;
        clients.ask_again(&plan).await?;
        let done = faults.done();
        let ledger = clients.ledger().await?;
        let evidence = Evidence {
            ledger: ledger.charged,
            open: clients.open().await?,
            damaged: done.damaged.clone(),
            true_time: self.store == StoreKind::Postgres || !done.counts.contains_key(&Fault::WrongClock),
        };
        let mut judged = check::judge(&plan, &clients.told(), &evidence);
        let records = inside.records().await?;
        judged.violations.extend(fencing::accepted(&records.kept, &records.history, &ledger.attempts));
        let reached = clients.processes.all().flat_map(|process| armed::reached(&process.log)).collect();
        Ok(Result { judged, done, reached, definite, took: clients.begun.elapsed() })
    }
}

impl Clients {
    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send_all(self: &Arc<Self>, plan: &[Arc<Operation>], progress: &Progress) {
        let places = Arc::new(Semaphore::new(self.concurrent));
        let mut under_way = JoinSet::new();
        for operation in plan {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let one = Arc::clone(self).one(Arc::clone(operation));
            under_way.spawn(async move {
                one.await;
                drop(place);
            });
            while under_way.try_join_next().is_some() {}
            self.begun_operations.fetch_add(1, Ordering::Relaxed);
            progress.one_more();
        }
        while under_way.join_next().await.is_some() {}
    }

    /// All requests of one operation, overlapping; then its client goes on until it knows.
    async fn one(self: Arc<Self>, operation: Arc<Operation>) {
        let mut under_way = JoinSet::new();
        for request in operation.requests.clone() {
            let (this, operation) = (Arc::clone(&self), Arc::clone(&operation));
            under_way.spawn(async move {
                tokio::time::sleep(request.after).await;
                let answer = this.send(&operation, request.variant, request.gateway, request.hangs_up).await;
                request.variant == Variant::Plain && is_definite(answer.as_ref())
            });
        }
        let mut known = false;
        while let Some(heard) = under_way.join_next().await {
            known |= heard.unwrap_or(false);
        }
        let until = Instant::now() + PERSISTENCE;
        let mut gateway = operation.number as usize;
        while !known && !operation.abandoned && Instant::now() < until {
            tokio::time::sleep(ASK_EVERY).await;
            gateway += 1;
            known = is_definite(self.send(&operation, Variant::Plain, gateway, false).await.as_ref());
        }
    }

    async fn send(
        &self,
        operation: &Operation,
        variant: Variant,
        gateway: usize,
        hangs_up: bool,
    ) -> Option<Answer> {
        let tenant = format!("tenant-{}", operation.tenant_of(variant));
        let gateway = gateway % self.processes.gateways_at.len();
        let payment = Call {
            method: "POST",
            path: operation.window.path(),
            headers: &[
                ("idempotency-key", operation.key_of(variant)),
                ("x-account-id", &tenant),
                ("content-type", "application/json"),
            ],
            body: operation.body(variant).to_string(),
        };
        let to = self.processes.gateways_at[gateway];
        self.under_way[gateway].fetch_add(1, Ordering::Relaxed);
        let sent = self.begun.elapsed();
        let answer = if hangs_up {
            send_and_hang_up(to, payment).await;
            None
        } else {
            call(to, payment, PATIENCE).await.ok()
        };
        let heard = self.begun.elapsed();
        self.under_way[gateway].fetch_sub(1, Ordering::Relaxed);
        let told = Told { operation: operation.number, variant, sent, heard, answer: answer.clone() };
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        answer
    }

    /// Nothing goes wrong any more.
    async fn heal(&self) -> Outcome<()> {
        if let Some(database) = &self.processes.database {
            for network in &database.networks {
                network.turn(crate::proxy::Weather::Fair);
            }
            // Cut off in the middle of a crash it may be down.
            let _ = database.cluster.start_again();
        }
        for process in self.processes.all() {
            // The faults may have ended in the middle of a freeze.
            process.wake().await?;
            process.start().await?;
        }
        let settings = Call {
            method: "PUT",
            path: "/settings",
            headers: &[("content-type", "application/json")],
            body: r#"{"misbehave":{}}"#.to_owned(),
        };
        match call(self.processes.provider_at, settings, PATIENCE).await {
            Ok(answer) if answer.status == 200 => Ok(()),
            other => Err(format!("the provider cannot be told to behave: {other:?}").into()),
        }
    }

    /// Asks for everything again, until each request has an answer that stays.
    async fn ask_again(self: &Arc<Self>, plan: &[Arc<Operation>]) -> Outcome<()> {
        let places = Arc::new(Semaphore::new(ASKED_AT_ONCE));
        let mut under_way = JoinSet::new();
        for operation in plan {
            let place = Arc::clone(&places).acquire_owned().await?;
            let (this, operation) = (Arc::clone(self), Arc::clone(operation));
            under_way.spawn(async move {
                for variant in Variant::EXECUTABLE.into_iter().filter(|variant| operation.has(*variant)) {
                    this.until_definite(&operation, variant).await;
                }
                drop(place);
            });
            while under_way.try_join_next().is_some() {}
        }
        while under_way.join_next().await.is_some() {}
        Ok(())
    }

    async fn until_definite(&self, operation: &Operation, variant: Variant) {
        let until = Instant::now() + HEALING;
        let mut gateway = operation.number as usize;
        while Instant::now() < until {
            let answer = self.send(operation, variant, gateway, false).await;
            if is_definite(answer.as_ref()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            gateway += 1;
        }
    }

    async fn ledger(&self) -> Outcome<Ledger> {
        let mut ledger = Ledger::default();
        let mut after = 0;
        loop {
            let page = self.get(self.processes.provider_at, &format!("/ledger?after={after}")).await?;
            for entry in
                page["entries"].as_array().into_iter().flatten().filter(|entry| entry["kind"] == "charge")
            {
                let reference = entry["reference"].as_str().unwrap_or_default().to_owned();
                *ledger.charged.entry(reference).or_default() += 1;
                let operation = entry["identity"].as_str().unwrap_or_default().replace('-', "");
                ledger
                    .attempts
                    .entry(operation)
                    .or_default()
                    .push(entry["attempt"].as_i64().unwrap_or_default());
            }
            match page["next"].as_u64() {
                Some(next) => after = next,
                None => return Ok(ledger),
            }
        }
    }

    /// What Semel says is open still.
    async fn open(&self) -> Outcome<Value> {
        self.get(self.processes.admins_at[0], "/v1/stats").await
    }

    async fn get(&self, at: std::net::SocketAddr, path: &str) -> Outcome<Value> {
        let question = Call { method: "GET", path, headers: &[], body: String::new() };
        let answer = call(at, question, PATIENCE).await.map_err(|failed| format!("{path}: {failed:?}"))?;
        if answer.status != 200 {
            return Err(format!("{path}: {} {}", answer.status, answer.body).into());
        }
        Ok(answer.json())
    }
}

fn is_definite(answer: Option<&Answer>) -> bool {
    answer.is_some_and(|answer| answer.meaning().is_definite())
}
