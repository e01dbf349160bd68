//! A shop with one operation, its clock in the test's hand.

use crate::interposed::Interposed;
use bytes::Bytes;
use semel::fingerprint::{Command, Recipe};
use semel::observe::{Event, Observer};
use semel::transition::state_at;
use semel::{
    Body, Created, Decision, Engine, EngineOptions, HistoryLine, Incoming, ManualClock, MemoryStore,
    OperationId, Outcome, Policy, Record, RecordKey, State, Store, StoredResponse, Ticket, Timestamp,
};
use semel_conformance::Hands;
use semel_sqlite::{Clock, SqliteOptions, SqliteStore};
use semel_worker::{
    Asking, LeaseWatch, OperationRules, Reaper, ReaperOptions, Reconciler, Rules, Worker, WorkerOptions,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub(crate) const OPERATION: &str = "create_payment";
pub(crate) const LEASE: Duration = Duration::from_secs(30);

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Where shops keep their records.
pub(crate) trait Place: Send + Sync {
    /// Another way to the same records, as another process has it.
    fn open(&self) -> impl Future<Output = Arc<dyn Store>> + Send;
    fn hands(&self) -> Arc<dyn Hands>;
}

pub(crate) struct Memory(MemoryStore, ManualClock);

impl Memory {
    pub(crate) fn new() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        Self(MemoryStore::with_clock(clock.clone()), clock)
    }
}

impl Place for Memory {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn hands(&self) -> Arc<dyn Hands> {
        Arc::new(self.1.clone())
    }
}

pub(crate) struct Sqlite {
    directory: TempDir,
    clock: Driven,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap(), clock: Driven::default() }
    }

    /// The store itself, for whoever has tables of their own in the same file.
    pub(crate) async fn store(&self) -> SqliteStore {
        // The disk is not what these tests are about.
        let options = SqliteOptions::new().clock(self.clock.clone()).dangerously_without_fsync();
        options.open(self.directory.path().join("semel.db")).await.unwrap()
    }
}

impl Place for Sqlite {
    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store().await)
    }

    fn hands(&self) -> Arc<dyn Hands> {
        Arc::new(self.clock.clone())
    }
}

/// The wall clock and the monotonic one, moved together by hand.
#[derive(Clone, Default)]
struct Driven(Arc<Mutex<Duration>>);

impl Clock for Driven {
    fn boottime(&self) -> Duration {
        self.monotonic()
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + secs(1_800_000_000) + *self.0.lock().unwrap()
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }
}

impl Hands for Driven {
    fn jump(&self, _by: Duration) {
        unreachable!("these tests let time pass")
    }

    fn come_back(&self, _by: Duration) {
        unreachable!("these tests let time pass")
    }

    fn forward(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }

    fn back(&self, _: Duration) {
        unreachable!("these tests do not set the clock back")
    }
}

/// Counts what it is told.
#[derive(Default)]
pub(crate) struct Counted(Mutex<BTreeMap<&'static str, u64>>);

impl Counted {
    pub(crate) fn of(&self, event: Event) -> u64 {
        self.0.lock().unwrap().get(event.as_str()).copied().unwrap_or_default()
    }
}

impl Observer for Counted {
    fn count(&self, _operation: &str, event: Event) {
        *self.0.lock().unwrap().entry(event.as_str()).or_default() += 1;
    }
}

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) engine: Engine,
    pub(crate) store: Interposed,
    pub(crate) hands: Arc<dyn Hands>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) asking: Option<Asking>,
    pub(crate) counted: Arc<Counted>,
}

impl Shop {
    /// In memory, with these rules.
    pub(crate) async fn new(policy: Policy) -> Self {
        Self::at(&Memory::new(), policy).await
    }

    /// In memory, with somebody to ask.
    pub(crate) async fn asking(asking: Asking) -> Self {
        Self::asking_at(&Memory::new(), asking).await
    }

    pub(crate) async fn asking_at(place: &impl Place, asking: Asking) -> Self {
        let policy = Policy { settling: asking.settling(), ..Policy::default() };
        Self { asking: Some(asking), ..Self::at(place, policy).await }
    }

    pub(crate) async fn at(place: &impl Place, policy: Policy) -> Self {
        Self::through(Interposed::over(place.open().await), place.hands(), policy)
    }

    pub(crate) fn through(store: Interposed, hands: Arc<dyn Hands>, policy: Policy) -> Self {
        let counted = Arc::new(Counted::default());
        let observer: Arc<dyn Observer> = counted.clone();
        let options = EngineOptions { observer: Some(observer), ..EngineOptions::default() };
        let engine = Engine::with_options(Arc::new(store.clone()), options);
        Self { engine, store, hands, policy: Arc::new(policy), asking: None, counted }
    }

    /// The same shop in another process, whose way to the store is this one. What it counts is its own.
    pub(crate) fn elsewhere(&self, store: Interposed) -> Self {
        let shop = Self::through(store, Arc::clone(&self.hands), Policy::default());
        Self { policy: Arc::clone(&self.policy), asking: self.asking.clone(), ..shop }
    }

    pub(crate) fn rules(&self) -> Rules {
        let rules = OperationRules { policy: Arc::clone(&self.policy), asking: self.asking.clone() };
        Arc::new(move |operation| (operation == OPERATION).then(|| rules.clone()))
    }

    pub(crate) fn watch(&self) -> LeaseWatch {
        LeaseWatch::new(self.engine.clone(), self.rules(), 10)
    }

    pub(crate) fn reconciler(&self) -> Reconciler {
        Reconciler::new(self.engine.clone(), self.rules(), 8)
    }

    pub(crate) fn reaper(&self, options: ReaperOptions) -> Reaper {
        Reaper::new(self.engine.clone(), options)
    }

    pub(crate) fn worker(&self, options: WorkerOptions) -> Worker {
        let rules = OperationRules { policy: Arc::clone(&self.policy), asking: self.asking.clone() };
        Worker::new(self.engine.clone(), options).operation(OPERATION, rules)
    }

    /// Starts a worker that looks about all the time, and asks little at once. It works until it is killed.
    pub(crate) fn hasty_worker(&self) -> JoinHandle<()> {
        let every = Duration::from_millis(10);
        let options = WorkerOptions {
            watch_every: every,
            reconcile_every: every,
            questions: 4,
            ..WorkerOptions::default()
        };
        tokio::spawn(self.worker(options).run(std::future::pending()))
    }

    /// Lets the store's time pass.
    pub(crate) fn pass(&self, time: Duration) {
        self.hands.forward(time);
    }

    pub(crate) async fn request(&self, number: u32) -> Decision {
        self.request_as(key(number)).await
    }

    pub(crate) async fn request_as(&self, key: RecordKey) -> Decision {
        let command = command();
        self.engine.begin(self.incoming(key, &command)).await.unwrap()
    }

    fn incoming<'a>(&self, key: RecordKey, command: &'a Command) -> Incoming<'a> {
        Incoming { key, subject: command, policy: Arc::clone(&self.policy) }
    }

    pub(crate) async fn execute(&self, number: u32) -> Ticket {
        match self.request(number).await {
            Decision::Execute(ticket) => ticket,
            other => panic!("it was to execute, and got {other:?}"),
        }
    }

    /// An operation whose owner says that nobody knows.
    pub(crate) async fn doubted(&self, number: u32) -> OperationId {
        let ticket = self.execute(number).await;
        let id = ticket.operation_id();
        ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
        id
    }

    /// An operation whose owner is gone without a word; its lease still runs.
    pub(crate) async fn abandoned(&self, number: u32) -> OperationId {
        self.abandoned_as(key(number)).await
    }

    pub(crate) async fn abandoned_as(&self, key: RecordKey) -> OperationId {
        // Reserved, and nobody has a ticket: a process that died gives no signs of life, and drops nothing.
        let command = command();
        let draft = self.engine.draft(&self.incoming(key, &command)).await.unwrap();
        let id = draft.operation_id;
        let created = self.store.create(vec![draft]).await.unwrap().items.remove(0);
        assert_eq!(created, Created::Inserted);
        id
    }

    pub(crate) async fn completed(&self, number: u32, body: &'static str) -> OperationId {
        let ticket = self.execute(number).await;
        let id = ticket.operation_id();
        let outcome = Outcome::Completed { response: Some(answer(201, body)), resource: None };
        ticket.finish(outcome).await.unwrap();
        id
    }

    pub(crate) async fn record(&self, id: OperationId) -> Option<Record> {
        self.store.find(vec![id]).await.unwrap().items.remove(0)
    }

    pub(crate) async fn state(&self, id: OperationId) -> State {
        let mut found = self.store.find(vec![id]).await.unwrap();
        state_at(&found.items.remove(0).expect("the operation is there"), found.now)
    }

    pub(crate) async fn history(&self, id: OperationId) -> Vec<HistoryLine> {
        self.store.history(id).await.unwrap()
    }

    /// What happened to an operation, by name.
    pub(crate) async fn happenings(&self, id: OperationId) -> Vec<&'static str> {
        self.history(id).await.iter().map(|line| line.entry.happening.as_str()).collect()
    }

    pub(crate) async fn notes(&self, id: OperationId) -> Vec<String> {
        self.history(id).await.into_iter().filter_map(|line| line.entry.note).collect()
    }
}

fn command() -> Command {
    let recipe = Arc::new(Recipe::builder().command("create_payment/1").build().unwrap());
    Command::new(recipe, None, &serde_json::json!({ "amount": "10.00" })).unwrap()
}

pub(crate) fn key(number: u32) -> RecordKey {
    RecordKey::new("acme", OPERATION, format!("key-{number:016}"))
}

pub(crate) fn answer(status: u16, body: &'static str) -> StoredResponse {
    StoredResponse {
        status,
        headers: vec![("content-type".into(), Bytes::from_static(b"text/plain"))],
        body: Body::Stored(Bytes::from_static(body.as_bytes())),
        schema_version: None,
    }
}

/// Status and body that a decision replays.
pub(crate) fn replayed(decision: Decision) -> (u16, Bytes) {
    match decision {
        Decision::Replay(record) => match record.response.unwrap() {
            StoredResponse { status, body: Body::Stored(bytes), .. } => (status, bytes),
            other => panic!("a replay without a body: {other:?}"),
        },
        other => panic!("it was to be replayed, and got {other:?}"),
    }
}
