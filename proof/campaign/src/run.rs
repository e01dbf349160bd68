//! One campaign: clients and faults together, then healing, then everything asked for once more, then the judgement.

use crate::check::{self, Judged};
use crate::client::{Call, call, send_and_hang_up};
use crate::faults::{FaultLog, rain};
use crate::log::{Answer, Told};
use crate::plan::{Operation, Variant, operations};
use crate::processes::{GATEWAYS, Outcome, Processes, StoreKind};
use crate::report;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many operations are under way at once.
const CONCURRENT: usize = 128;
/// How long a client waits for one answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client keeps asking while things go wrong.
const PERSISTENCE: Duration = Duration::from_secs(8);
/// How long everything may take to settle once nothing goes wrong any more.
const HEALING: Duration = Duration::from_secs(120);

pub(crate) struct Campaign {
    pub(crate) store: StoreKind,
    pub(crate) seed: u64,
    pub(crate) operations: u32,
}

/// What came out of a campaign.
pub(crate) struct Result {
    pub(crate) judged: Judged,
    pub(crate) faults: BTreeMap<crate::faults::Fault, u32>,
    /// Operations that had a definite answer before the faults ended.
    pub(crate) definite: usize,
    pub(crate) took: Duration,
}

struct Clients {
    processes: Processes,
    begun: Instant,
    told: Mutex<Vec<Told>>,
}

impl Campaign {
    pub(crate) async fn run(&self, directory: &std::path::Path) -> Outcome<Result> {
        let processes = Processes::start(self.store, self.seed, directory).await?;
        let plan: Vec<_> =
            operations(self.seed, self.operations, GATEWAYS).into_iter().map(Arc::new).collect();
        let clients = Arc::new(Clients { processes, begun: Instant::now(), told: Mutex::default() });
        let faults = FaultLog::default();
        tokio::select! {
            () = clients.send_all(&plan) => {}
            ended = rain(&clients.processes, self.seed, clients.begun, &faults) => ended?,
        }
        let definite = check::definite(&plan, &clients.told());
        report::healing(clients.begun.elapsed());
        clients.heal().await?;
        clients.ask_again(&plan).await?;
        let ledger = clients.ledger().await?;
        let open = clients.open().await?;
        let judged = check::judge(&plan, &clients.told(), &ledger, &open);
        Ok(Result { judged, faults: faults.counts(), definite, took: clients.begun.elapsed() })
    }
}

impl Clients {
    fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn send_all(self: &Arc<Self>, plan: &[Arc<Operation>]) {
        let places = Arc::new(Semaphore::new(CONCURRENT));
        let mut under_way = JoinSet::new();
        for (number, operation) in plan.iter().enumerate() {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let one = Arc::clone(self).one(Arc::clone(operation));
            under_way.spawn(async move {
                one.await;
                drop(place);
            });
            while under_way.try_join_next().is_some() {}
            report::progress(number, plan.len(), self.begun.elapsed());
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
        while !known && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(150)).await;
            gateway += 1;
            known =
                is_definite(self.send(&operation, Variant::Plain, gateway % GATEWAYS, false).await.as_ref());
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
        let payment = Call {
            method: "POST",
            path: "/payments",
            headers: &[
                ("idempotency-key", operation.key_of(variant)),
                ("x-account-id", &tenant),
                ("content-type", "application/json"),
            ],
            body: operation.body(variant).to_string(),
        };
        let to = self.processes.gateways_at[gateway];
        let sent = self.begun.elapsed();
        let answer = if hangs_up {
            send_and_hang_up(to, payment).await;
            None
        } else {
            call(to, payment, PATIENCE).await.ok()
        };
        let told = Told {
            operation: operation.number,
            variant,
            sent,
            heard: self.begun.elapsed(),
            answer: answer.clone(),
        };
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
        let until = Instant::now() + HEALING;
        let places = Arc::new(Semaphore::new(CONCURRENT));
        let mut under_way = JoinSet::new();
        for operation in plan {
            let place = Arc::clone(&places).acquire_owned().await?;
            let (this, operation) = (Arc::clone(self), Arc::clone(operation));
            under_way.spawn(async move {
                for variant in Variant::EXECUTABLE.into_iter().filter(|variant| operation.has(*variant)) {
                    this.until_definite(&operation, variant, until).await;
                }
                drop(place);
            });
            while under_way.try_join_next().is_some() {}
        }
        while under_way.join_next().await.is_some() {}
        Ok(())
    }

    async fn until_definite(&self, operation: &Operation, variant: Variant, until: Instant) {
        let mut gateway = operation.number as usize;
        while Instant::now() < until {
            let answer = self.send(operation, variant, gateway % GATEWAYS, false).await;
            if is_definite(answer.as_ref()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
            gateway += 1;
        }
    }

    /// How often each reference was charged.
    async fn ledger(&self) -> Outcome<BTreeMap<String, u32>> {
        let mut charged = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = self.get(self.processes.provider_at, &format!("/ledger?after={after}")).await?;
            for entry in
                page["entries"].as_array().into_iter().flatten().filter(|entry| entry["kind"] == "charge")
            {
                let reference = entry["reference"].as_str().unwrap_or_default().to_owned();
                *charged.entry(reference).or_default() += 1;
            }
            match page["next"].as_u64() {
                Some(next) => after = next,
                None => return Ok(charged),
            }
        }
    }

    /// What Semel says is open still.
    async fn open(&self) -> Outcome<Value> {
        self.get(self.processes.admin_at, "/v1/stats").await
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
