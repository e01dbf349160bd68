//! The engine: carries the decisions of [`transition`](crate::transition) to the store and back.
//!
//! [`Engine::begin`] reserves and decides; with [`Decision::Execute`] the caller gets a [`Ticket`] and executes. Nothing is
//! decided in process memory: any number of engines may share one store.

mod begin;
mod client_keys;
mod fingerprint_secrets;
mod finish;
mod forecast;
mod hash_secret;
mod heartbeats;
mod in_flight;
mod interruption;
mod operator;
mod outcome;
mod outcome_writes;
mod owner_write;
mod phases;
mod quota;
mod recipes;
mod right;
mod sealing;
mod settle;
mod ticket;
mod wait;
mod waiters;

pub use begin::{BeginError, Decision, Incoming};
pub use client_keys::KeysConverted;
pub use finish::{Finish, FinishError};
pub use forecast::Forecast;
pub use interruption::Interruption;
pub use operator::{Acted, Audited, OperatorTerms};
pub use outcome::Outcome;
pub use outcome_writes::OutcomeWrites;
pub use phases::{
    AtMostOnce, Checkpoint, Deduplicated, Entered, Found, Identity, Inquiry, OutOfStep, PhaseError, Phases,
    Promise, Queryable, Step, Takeover, queryable,
};
pub use quota::{Quota, Quotas, Rate};
pub use right::{Right, RightEnded};
pub use settle::Settled;
pub use ticket::{AdvanceError, Ticket, downstream_key};

use crate::environment::Environment;
use crate::fingerprint::FingerprintSecret;
use crate::observe::{Event, Observer};
use crate::record::Record;
use crate::seal::Keyring;
use crate::store::{Store, StoreHandle};
use client_keys::LearntKeys;
use fingerprint_secrets::FingerprintSecrets;
use finish::MAX_ABANDONING;
use heartbeats::Heartbeats;
use in_flight::InFlightCount;
use quota::Watched;
use recipes::Recipes;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};
use waiters::Waiters;

/// The instant `span` from now, at most ten years away.
fn moment_after(span: Duration) -> tokio::time::Instant {
    const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);
    tokio::time::Instant::now() + span.min(NEVER)
}

/// The engine over one store. Cheap to clone; all clones share batches and limits.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    store: StoreHandle,
    recipes: Recipes,
    waiters: Waiters,
    watched: RwLock<Arc<Watched>>,
    in_flight: InFlightCount,
    abandoning: Arc<Semaphore>,
    heartbeats: Heartbeats,
    secret: OnceCell<FingerprintSecret>,
    fingerprint_secrets: FingerprintSecrets,
    keyring: RwLock<Option<Arc<Keyring>>>,
    client_keys: LearntKeys,
    observer: Option<Arc<dyn Observer>>,
    environment: Environment,
}

impl Shared {
    fn count(&self, operation: &str, event: Event) {
        if let Some(observer) = &self.observer {
            observer.count(operation, event);
        }
    }

    /// Counts the event that a record shows that was just written.
    fn written(&self, record: &Record) {
        if let Some(event) = Event::of_written(record) {
            self.count(&record.key.operation, event);
        }
    }
}

/// How an engine treats its store.
#[derive(Clone)]
pub struct EngineOptions {
    /// Bounds every call to the store. Default 2 s.
    pub store_timeout: Duration,
    /// How many requests at most may wait for another one's answer ([`InFlight::Wait`](crate::InFlight::Wait)); past it they
    /// get 409 at once. Default 1024.
    pub max_waiters: usize,
    /// How many of them may be of one tenant. Default 256.
    pub max_waiters_per_tenant: usize,
    /// What tenants may take. Default: there is no limit.
    pub quotas: Quotas,
    /// Receives events and measurements. Default: none, and nothing is measured.
    pub observer: Option<Arc<dyn Observer>>,
    /// Seals answers and checkpoints, and client keys where the store was never used without, before they reach the store: see
    /// [`seal`](crate::seal). Default: nothing is sealed, and what is sealed does not open.
    pub keyring: Option<Keyring>,
    /// Clocks and randomness. Default: the machine's.
    pub environment: Environment,
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("store_timeout", &self.store_timeout)
            .field("max_waiters", &self.max_waiters)
            .field("max_waiters_per_tenant", &self.max_waiters_per_tenant)
            .field("quotas", &self.quotas)
            .field("observed", &self.observer.is_some())
            .field("keyring", &self.keyring)
            .field("environment", &self.environment)
            .finish()
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            store_timeout: Duration::from_secs(2),
            max_waiters: 1024,
            max_waiters_per_tenant: 256,
            quotas: Quotas::default(),
            observer: None,
            keyring: None,
            environment: Environment::default(),
        }
    }
}

impl Engine {
    /// An engine over `store` with the default options.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self::with_options(Arc::new(store), EngineOptions::default())
    }

    /// An engine over a shared store.
    #[must_use]
    pub fn with_options(store: Arc<dyn Store>, options: EngineOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                store: StoreHandle::observed(store, options.store_timeout, options.observer.clone()),
                recipes: Recipes::default(),
                waiters: Waiters::new(options.max_waiters, options.max_waiters_per_tenant),
                watched: RwLock::new(Arc::new(Watched::new(options.quotas))),
                in_flight: InFlightCount::default(),
                abandoning: Arc::new(Semaphore::new(MAX_ABANDONING)),
                heartbeats: Heartbeats::default(),
                secret: OnceCell::new(),
                fingerprint_secrets: FingerprintSecrets::default(),
                keyring: RwLock::new(options.keyring.map(Arc::new)),
                client_keys: LearntKeys::default(),
                observer: options.observer,
                environment: options.environment,
            }),
        }
    }

    /// The store, for what the engine does not do: listing, watching, reaping.
    #[must_use]
    pub fn store(&self) -> &StoreHandle {
        &self.shared.store
    }

    /// How long a call to the store may take.
    #[must_use]
    pub fn store_timeout(&self) -> Duration {
        self.shared.store.timeout()
    }

    /// The observer, for code beside the engine that reports events too.
    #[must_use]
    pub fn observer(&self) -> Option<&Arc<dyn Observer>> {
        self.shared.observer.as_ref()
    }

    /// Its clocks and randomness, for code that works with this engine.
    #[must_use]
    pub fn environment(&self) -> &Environment {
        &self.shared.environment
    }

    /// Waits until no ticket is held and every outcome is written; for use before the process ends.
    pub async fn drained(&self) {
        self.shared.in_flight.drained().await;
    }

    /// How many tickets are held, or have an outcome that is not written yet.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shared.in_flight.count()
    }
}
