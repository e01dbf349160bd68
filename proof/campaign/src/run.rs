//! One campaign: clients and faults together, then healing, then everything asked for once more, then the judgement.

use crate::armed;
use crate::cache::CacheKind;
use crate::check::{self, Evidence, Judged};
use crate::client::{Call, PATIENCE, call, get, send_and_hang_up};
use crate::damage;
use crate::fault::Fault;
use crate::fencing;
use crate::http2::Connection;
use crate::inside::Inside;
use crate::ledger::Ledger;
use crate::log::{Answer, Told};
use crate::off::{Off, StoreTime};
use crate::operator::Desk;
use crate::outcome::Outcome;
use crate::pairs::State;
use crate::plan::{Operation, Variant, operations};
use crate::processes::{Processes, Staging};
use crate::profile::Profile;
use crate::progress::Progress;
use crate::rain::{Done, FaultLog, Rain};
use crate::scene::Scene;
use crate::started::{self, Books};
use crate::starts::{self, Event};
use crate::store::StoreKind;
use crate::webhooks;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How long a client keeps asking while things go wrong, and how often.
const PERSISTENCE: Duration = Duration::from_secs(8);
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long an operation may take to settle once nothing goes wrong any more.
const HEALING: Duration = Duration::from_secs(300);
/// How many are asked for at once then. All at once would be a fault of its own on a slow machine: a store that is never done in time.
const ASKED_AT_ONCE: usize = 64;

/// How old Semel's word on what is open may be, and some more.
const STALE_WORD: Duration = Duration::from_secs(8);

/// One round: a part of a campaign that has processes, a store and a seed of its own.
pub(crate) struct Round {
    pub(crate) store: StoreKind,
    pub(crate) scene: Scene,
    pub(crate) profile: Profile,
    pub(crate) seed: u64,
    pub(crate) operations: u32,
    /// How many operations are under way at once.
    pub(crate) concurrent: usize,
    /// One fault for so many operations, at most.
    pub(crate) per_fault: usize,
    /// Only these faults, if any are named.
    pub(crate) only: Vec<Fault>,
    /// What is in front of the gateways' store, if anything.
    pub(crate) redis: Option<CacheKind>,
    pub(crate) other_build: Option<PathBuf>,
}

/// What came out of a round.
pub(crate) struct Result {
    pub(crate) judged: Judged,
    pub(crate) done: Done,
    /// Fail points that went off.
    pub(crate) reached: BTreeSet<String>,
    /// Operations that had a definite answer before the faults ended.
    pub(crate) definite: usize,
    /// How often a service began to act.
    pub(crate) starts: usize,
    /// What the operator settled, and what was refused.
    pub(crate) settled: u64,
    pub(crate) refused: u64,
    pub(crate) took: Duration,
}

struct Clients {
    processes: Processes,
    begun: Instant,
    told: Mutex<Vec<Told>>,
    under_way: Vec<AtomicUsize>,
    begun_operations: AtomicUsize,
    concurrent: usize,
    /// Where HTTP/2 is spoken: the way to each gateway.
    connections: Vec<Connection>,
}

impl Round {
    pub(crate) async fn run(&self, directory: &Path, progress: &Progress) -> Outcome<Result> {
        let staging = Staging {
            store: self.store,
            scene: self.scene,
            profile: self.profile,
            seed: self.seed,
            directory,
            redis: self.redis,
            other_build: self.other_build.as_deref(),
        };
        let processes = Processes::start(&staging).await?;
        let gateways = processes.gateways.len();
        let plan: Vec<_> =
            operations(self.seed, self.operations, gateways).into_iter().map(Arc::new).collect();
        let speaks_http2 = self.profile == Profile::Http2;
        let ways = processes.sites.iter().filter(|_| speaks_http2);
        let clients = Arc::new(Clients {
            connections: ways.map(|site| Connection::new(site.listen)).collect(),
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
            only: &self.only,
            seed: self.seed,
            begun: clients.begun,
            log: &faults,
        };
        let desk = Desk::default();
        tokio::select! {
            () = clients.send_all(&plan, progress) => {}
            ended = rain.fall() => ended?,
            () = progress.watch(|| faults.count()) => {}
            ended = self.settle(&clients, &desk, &plan) => ended?,
        }
        let definite = check::definite(&plan, &clients.told());
        progress.healing();
        clients.heal().await?;
        tokio::select! {
            asked = clients.ask_again(&plan) => asked?,
            ended = self.settle(&clients, &desk, &plan) => ended?,
        }
        let open = clients.open(&inside).await?;
        let mut done = faults.done();
        let keys_replaced = if self.profile == Profile::Reload && self.scene != Scene::PowerCuts {
            let replaced = clients.processes.replace_key_at_last().await?;
            done.keys_taken_away += u32::from(replaced);
            // Every answer is to be had without the old keys.
            clients.ask_again(&plan).await?;
            Some(replaced)
        } else {
            None
        };
        let ledger = match self.profile.has_no_gateway() {
            true => inside.payments().await?,
            false => Ledger::of(clients.processes.provider_at).await?,
        };
        let events = starts::read(&clients.processes.starts())?;
        let time = StoreTime::after(&done.steps, self.profile);
        let evidence = Evidence {
            profile: self.profile,
            ledger: ledger.charged,
            charged: ledger.attempts,
            open,
            damaged: damage::by_key(&plan, &events, &done.damaged),
            time,
            keys_replaced,
            were_ended: done.counts.contains_key(&Fault::RollingRestart),
        };
        let mut judged = check::judge(&plan, &clients.told(), &evidence);
        let records = inside.records().await?;
        let Evidence { charged, .. } = &evidence;
        judged.violations.extend(fencing::accepted(&records.kept, &records.history, charged, self.profile));
        let books =
            Books { profile: self.profile, kept: &records.kept, history: &records.history, charged, time };
        judged.violations.extend(started::objections(&plan, &events, &books));
        judged.violations.extend(desk.objections());
        judged.violations.append(&mut done.objections);
        let reached = clients.processes.all().flat_map(|process| armed::reached(&process.log)).collect();
        let starts = events.iter().filter(|event| matches!(event, Event::Start(_))).count();
        let (settled, refused) = desk.counts();
        Ok(Result {
            judged,
            done,
            reached,
            definite,
            starts,
            settled,
            refused,
            took: clients.begun.elapsed(),
        })
    }

    /// Whoever settles doubt from outside, without end.
    async fn settle(&self, clients: &Clients, desk: &Desk, plan: &[Arc<Operation>]) -> Outcome<()> {
        let processes = &clients.processes;
        match self.profile {
            Profile::WebhooksByKey => tokio::select! {
                ended = desk.work(processes, self.seed) => ended.map(drop),
                () = webhooks::report(processes, plan, self.seed) => Ok(()),
            },
            profile if profile.has_operator() => desk.work(processes, self.seed).await.map(drop),
            _ => std::future::pending().await,
        }
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
        let gateway = gateway % self.processes.sites.len();
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
        self.under_way[gateway].fetch_add(1, Ordering::Relaxed);
        let sent = self.begun.elapsed();
        let answer = if hangs_up {
            self.send_and_hang_up(gateway, payment).await;
            None
        } else {
            self.call(gateway, payment).await
        };
        let heard = self.begun.elapsed();
        self.under_way[gateway].fetch_sub(1, Ordering::Relaxed);
        let told = Told { operation: operation.number, variant, sent, heard, answer: answer.clone() };
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        answer
    }

    async fn call(&self, gateway: usize, payment: Call<'_>) -> Option<Answer> {
        match self.connections.get(gateway) {
            Some(connection) => connection.call(payment, PATIENCE).await.ok(),
            None => call(self.processes.sites[gateway].listen, payment, PATIENCE).await.ok(),
        }
    }

    async fn send_and_hang_up(&self, gateway: usize, payment: Call<'_>) {
        match self.connections.get(gateway) {
            // A stream that is reset, on a connection that stays.
            Some(connection) => drop(connection.call(payment, Duration::from_millis(5)).await),
            None => send_and_hang_up(self.processes.sites[gateway].listen, payment).await,
        }
    }

    /// Nothing goes wrong any more.
    async fn heal(&self) -> Outcome<()> {
        if let Some(database) = &self.processes.database {
            for network in &database.networks {
                network.turn(crate::proxy::Weather::Fair);
            }
            // Cut off in the middle of a crash it may be down.
            let _ = database.cluster.start_again();
            if let Some(clock) = &database.clock {
                clock.put_right().await;
            }
        }
        if let Some(clock) = &self.processes.clock {
            clock.step(Off::NONE)?;
        }
        if let Some(disk) = &self.processes.disk {
            disk.untrouble()?;
        }
        for process in self.processes.all() {
            // The faults may have ended in the middle of a freeze.
            process.wake().await?;
            process.start().await?;
        }
        if self.processes.profile.has_no_gateway() {
            return Ok(());
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

    /// What is open still: by Semel's word, or where nobody gives it, by the store itself. Semel's word may be some seconds old.
    async fn open(&self, inside: &Inside) -> Outcome<Value> {
        let until = Instant::now() + STALE_WORD;
        loop {
            // Whoever has just healed may not have its store back yet.
            let open = self.open_now(inside).await;
            let states = ["in_progress", "unknown", "dead_letters"];
            let settled = open.as_ref().is_ok_and(|open| states.iter().all(|state| open[state] == 0));
            if settled || Instant::now() > until {
                return open;
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    }

    async fn open_now(&self, inside: &Inside) -> Outcome<Value> {
        if !self.processes.profile.has_no_gateway() {
            return get(self.processes.sites[0].admin, "/v1/stats").await;
        }
        let census = inside.census().await.ok_or("the store cannot be asked")?;
        let count = |state| census.get(&state).copied().unwrap_or_default();
        let (in_progress, unknown) = (count(State::InProgress), count(State::Unknown));
        Ok(json!({ "in_progress": in_progress, "unknown": unknown, "dead_letters": 0 }))
    }
}

fn is_definite(answer: Option<&Answer>) -> bool {
    answer.is_some_and(|answer| answer.meaning().is_definite())
}
