//! Instances of a service with one operation: engines on one store, with a Redis in front or without.

use bytes::Bytes;
use semel::clock::Clock;
use semel::fingerprint::{Command, Recipe};
use semel::seal::Keyring;
use semel::{
    Body, Decision, Engine, EngineOptions, Environment, Finish, Incoming, ManualClock, MemoryStore, Outcome,
    Policy, Randomness, RecordKey, Store, StoredResponse, Ticket, Timestamp,
};
use semel_redis::{Counts, TierOptions, Tiered};
use semel_testing::servers::Server;
use semel_testing::store::{Call, FaultyStore};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// One store, and the instances on it.
pub(crate) struct Service {
    pub(crate) clock: ManualClock,
    pub(crate) store: FaultyStore,
    pub(crate) url: String,
}

/// An instance.
#[derive(Clone)]
pub(crate) struct Instance {
    pub(crate) engine: Engine,
    pub(crate) counts: Option<Arc<Counts>>,
    pub(crate) policy: Policy,
}

/// By the store's clock and nothing else.
struct Hands(ManualClock);

impl Clock for Hands {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.boottime()
    }

    fn monotonic(&self) -> Duration {
        self.boottime()
    }

    fn boottime(&self) -> Duration {
        Duration::from_millis(self.0.now().as_millis().unsigned_abs())
    }

    fn synchronised(&self) -> Option<bool> {
        None
    }
}

struct Random;

impl Randomness for Random {
    fn bits(&self) -> u128 {
        let half = || u128::from(RandomState::new().hash_one(0));
        half() << 64 | half()
    }
}

impl Service {
    /// On the Redis that all tests share.
    pub(crate) fn new() -> Self {
        Self::at(Server::Redis.url())
    }

    pub(crate) fn at(url: String) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        let store = FaultyStore::over(MemoryStore::with_clock(clock.clone()));
        Self { clock, store, url }
    }

    /// Time enough for a machine that does other things as well.
    pub(crate) fn options(&self) -> TierOptions {
        let mut options = TierOptions::default();
        options.timeout = Duration::from_secs(1);
        options.environment = Environment::new(Arc::new(Hands(self.clock.clone())), Arc::new(Random));
        options
    }

    pub(crate) async fn instance(&self) -> Instance {
        self.instance_with(self.options(), None).await
    }

    pub(crate) async fn instance_with(&self, options: TierOptions, keyring: Option<Keyring>) -> Instance {
        let tiered = self.tiered(options);
        let counts = tiered.counts();
        in_use(&counts).await;
        Instance { counts: Some(counts), ..self.on(Arc::new(tiered), keyring) }
    }

    pub(crate) fn tiered(&self, options: TierOptions) -> Tiered {
        Tiered::with_options(Arc::new(self.store.clone()), self.url.parse().unwrap(), options).unwrap()
    }

    pub(crate) fn without_the_tier(&self) -> Instance {
        self.on(Arc::new(self.store.clone()), None)
    }

    pub(crate) fn on(&self, store: Arc<dyn Store>, keyring: Option<Keyring>) -> Instance {
        let engine = Engine::with_options(store, EngineOptions { keyring, ..EngineOptions::default() });
        Instance { engine, counts: None, policy: Policy::default() }
    }

    /// How many reservations were asked of the store so far.
    pub(crate) fn creates(&self) -> usize {
        self.store.batches(Call::Create).len()
    }
}

/// Waits until Redis is used.
pub(crate) async fn in_use(counts: &Counts) {
    while counts.is_open() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Instance {
    pub(crate) fn counts(&self) -> &Counts {
        self.counts.as_ref().unwrap()
    }

    pub(crate) async fn ask_for(&self, key: &str, amount: &str) -> Decision {
        let recipe = Recipe::builder().command("create_payment/1").build().unwrap();
        let command = Command::new(Arc::new(recipe), None, &[("amount", amount)]).unwrap();
        let key = RecordKey::new("acme", "create_payment", key);
        let incoming = Incoming { key, subject: &command, policy: Arc::new(self.policy.clone()) };
        self.engine.begin(incoming).await.unwrap()
    }

    pub(crate) async fn ask(&self, key: &str) -> Decision {
        self.ask_for(key, "10.00").await
    }

    pub(crate) async fn execute(&self, key: &str) -> Ticket {
        match self.ask(key).await {
            Decision::Execute(ticket) => ticket,
            other => panic!("it was to execute, and got {other:?}"),
        }
    }

    /// From beginning to end; the answer.
    pub(crate) async fn carry_out(&self, key: &str) -> StoredResponse {
        complete(self.execute(key).await).await
    }

    pub(crate) async fn replayed(&self, key: &str) -> StoredResponse {
        match self.ask(key).await {
            Decision::Replay(record) => record.response.unwrap(),
            other => panic!("it was to be replayed, and got {other:?}"),
        }
    }
}

/// With an answer that no other attempt could give.
pub(crate) async fn complete(ticket: Ticket) -> StoredResponse {
    let response = StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), Bytes::from_static(b"text/plain"))],
        body: Body::Stored(Bytes::from(format!("{:?}", ticket.claim()))),
        schema_version: None,
    };
    let outcome = Outcome::Completed { response: Some(response.clone()), resource: None };
    assert!(matches!(ticket.finish(outcome).await, Ok(Finish::Stored)));
    response
}

/// Waits for what is written beside the requests.
pub(crate) async fn written(instance: &Instance, at_least: u64) {
    while instance.counts().written() < at_least {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
