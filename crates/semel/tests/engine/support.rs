//! A shop with one operation, on a store that fails as told and a clock that is moved by hand.

use bytes::Bytes;
use semel::fingerprint::{Command, Recipe};
use semel::observe::{Event, Observer, StoreCall};
use semel::seal::SEALED_KEY;
use semel::{
    BeginError, Body, Decision, Engine, EngineOptions, Filter, HistoryLine, InFlight, Incoming, ManualClock,
    MemoryStore, OperationId, Outcome, Policy, Record, RecordKey, State, Store as _, StoredResponse, Ticket,
    Timestamp,
};
use semel_testing::store::FaultyStore;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) engine: Engine,
    pub(crate) store: FaultyStore,
    pub(crate) memory: MemoryStore,
    pub(crate) clock: ManualClock,
    pub(crate) policy: Arc<Policy>,
    pub(crate) counted: Arc<Counted>,
}

/// Counts what it is told.
#[derive(Default)]
pub(crate) struct Counted {
    events: Mutex<BTreeMap<&'static str, u64>>,
    calls: Mutex<Vec<(StoreCall, Duration, bool)>>,
    batches: Mutex<Vec<(StoreCall, usize)>>,
}

impl Counted {
    /// What was counted so far, by name.
    pub(crate) fn events(&self) -> Vec<(&'static str, u64)> {
        self.events.lock().unwrap().iter().map(|(name, count)| (*name, *count)).collect()
    }

    /// The calls that ended: how long they took, and whether they were answered.
    pub(crate) fn calls(&self, kind: StoreCall) -> Vec<(Duration, bool)> {
        let calls = self.calls.lock().unwrap();
        calls
            .iter()
            .filter(|(call, ..)| *call == kind)
            .map(|(_, took, answered)| (*took, *answered))
            .collect()
    }

    pub(crate) fn batches(&self, kind: StoreCall) -> Vec<usize> {
        let batches = self.batches.lock().unwrap();
        batches.iter().filter(|(call, _)| *call == kind).map(|(_, size)| *size).collect()
    }
}

impl Observer for Counted {
    fn count(&self, operation: &str, event: Event) {
        assert_eq!(*operation, *key().operation);
        *self.events.lock().unwrap().entry(event.as_str()).or_default() += 1;
    }

    fn store_call(&self, call: StoreCall, took: Duration, answered: bool) {
        self.calls.lock().unwrap().push((call, took, answered));
    }

    fn batch(&self, call: StoreCall, size: usize) {
        self.batches.lock().unwrap().push((call, size));
    }
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::with(Policy::default())
    }

    pub(crate) fn with(policy: Policy) -> Self {
        Self::limited(policy, 1024)
    }

    pub(crate) fn limited(policy: Policy, max_waiters: usize) -> Self {
        Self::built(policy, EngineOptions { max_waiters, ..EngineOptions::default() })
    }

    pub(crate) fn built(policy: Policy, options: EngineOptions) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_000_000));
        let memory = MemoryStore::with_clock(clock.clone());
        let store = FaultyStore::over(memory.clone());
        let counted = Arc::new(Counted::default());
        let observer: Arc<dyn Observer> = counted.clone();
        let options = EngineOptions { store_timeout: STORE_TIMEOUT, observer: Some(observer), ..options };
        let engine = Engine::with_options(Arc::new(store.clone()), options);
        Self { engine, store, memory, clock, policy: Arc::new(policy), counted }
    }

    /// The same shop in another process: another engine on the same records, whose way to the store is sound.
    pub(crate) fn elsewhere(&self) -> Self {
        let store = FaultyStore::over(self.memory.clone());
        Self { engine: Engine::new(store.clone()), store, ..self.clone() }
    }

    /// The request of everybody.
    pub(crate) async fn begin(&self) -> Result<Decision, BeginError> {
        self.ask(&command("10.00")).await
    }

    pub(crate) async fn ask(&self, command: &Command) -> Result<Decision, BeginError> {
        self.ask_under(key(), command).await
    }

    pub(crate) async fn ask_under(&self, key: RecordKey, command: &Command) -> Result<Decision, BeginError> {
        let incoming = Incoming { key, subject: command, policy: Arc::clone(&self.policy) };
        self.engine.begin(incoming).await
    }

    pub(crate) async fn decide(&self) -> Decision {
        self.begin().await.unwrap()
    }

    /// The request, which has to be the one that executes.
    pub(crate) async fn execute(&self) -> Ticket {
        ticket(self.decide().await)
    }

    /// The record as the memory has it, behind all faults.
    pub(crate) async fn record(&self) -> Option<Record> {
        let plain = self.memory.read(vec![key()]).await.unwrap().items.remove(0);
        if plain.is_some() {
            return plain;
        }
        // Where keys are sealed, there is one record alone.
        let listed = self.memory.list(Filter::default(), None, 1).await.unwrap().records;
        let sealed = listed.first().filter(|record| record.key.key.starts_with(SEALED_KEY))?;
        self.memory.find(vec![sealed.operation_id]).await.unwrap().items.remove(0)
    }

    pub(crate) async fn state(&self) -> Option<State> {
        self.record().await.map(|record| record.state)
    }

    pub(crate) async fn history(&self, id: OperationId) -> Vec<HistoryLine> {
        self.memory.history(id).await.unwrap()
    }

    /// Lets the store's clock and tokio's go on together, a second at a time, as they do outside of tests.
    pub(crate) async fn pass(&self, time: Duration) {
        for _ in 0..time.as_secs() {
            self.clock.advance(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

pub(crate) fn waiting(patience: Duration) -> Policy {
    Policy { in_flight: InFlight::Wait(patience), ..Policy::default() }
}

pub(crate) fn key() -> RecordKey {
    RecordKey::new("acme", "create_payment", "key-0000000000000001")
}

pub(crate) fn recipe() -> Arc<Recipe> {
    Arc::new(Recipe::builder().command("create_payment/1").build().unwrap())
}

pub(crate) fn command(amount: &str) -> Command {
    Command::new(recipe(), None, &serde_json::json!({ "amount": amount })).unwrap()
}

pub(crate) fn ticket(decision: Decision) -> Ticket {
    match decision {
        Decision::Execute(ticket) => ticket,
        other => panic!("it was to execute, and got {other:?}"),
    }
}

pub(crate) fn answer(body: &'static str) -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), Bytes::from_static(b"text/plain"))],
        body: Body::Stored(Bytes::from_static(body.as_bytes())),
        schema_version: None,
    }
}

pub(crate) fn completed(body: &'static str) -> Outcome {
    Outcome::Completed { response: Some(answer(body)), resource: None }
}

pub(crate) fn retryable() -> Outcome {
    Outcome::Retryable { error: "unreachable".into() }
}

/// The body that a decision replays.
pub(crate) fn replayed(decision: Decision) -> Bytes {
    match decision {
        Decision::Replay(record) => match record.response.unwrap().body {
            Body::Stored(bytes) => bytes,
            other => panic!("a replay without a body: {other:?}"),
        },
        other => panic!("it was to be replayed, and got {other:?}"),
    }
}
