//! A shop behind the layer, and its admin: the admin API over the same engine.

pub(crate) use semel_testing::http::once::{Answer, Ask, KEY};
pub(crate) use semel_testing::http::{Server, Till};
pub(crate) use semel_testing::store::{Call, Fault, FaultyStore, Gate};

use semel::observe::Observer;
use semel::{
    Engine, EngineOptions, ManualClock, MemoryStore, OperationId, Policy, Record, Settling, Store, Timestamp,
};
use semel_events::outbox::OutboxAdmin;
use semel_events::outbox::postgres::PgOutbox;
use semel_events::outbox::sqlite::SqliteOutbox;
use semel_gateway::Secret;
use semel_gateway::admin::{self, Admin, Readiness};
use semel_gateway::identity::Directory;
use semel_gateway::metrics::Metrics;
use semel_postgres::PgStore;
use semel_sqlite::SqliteStore;
use semel_testing::database::Database;
use semel_tower::{IdempotencyLayer, KeyRequirement, Protection, ValidProtection};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const TOKEN: &str = "the-admin-token";

/// How long a call to the store may take where nothing is to fail: longer than any machine is busy.
const PATIENT: Duration = Duration::from_secs(8);

/// The shop and its admin.
pub(crate) struct AdminApi {
    pub(crate) admin: Server,
    pub(crate) shop: Server,
    pub(crate) till: Arc<Till>,
    pub(crate) engine: Engine,
    pub(crate) store: FaultyStore,
    pub(crate) clock: ManualClock,
    pub(crate) readiness: Readiness,
    _directory: Option<tempfile::TempDir>,
    _database: Option<Database>,
}

/// What an admin is opened with.
pub(crate) struct Opening {
    pub(crate) token: Option<&'static str>,
    pub(crate) policy: Policy,
    pub(crate) key: KeyRequirement,
    pub(crate) store_timeout: Duration,
    pub(crate) max_concurrent_batches: Option<usize>,
    pub(crate) on_file: bool,
    pub(crate) database: Option<Database>,
    pub(crate) people: Directory,
    pub(crate) outbox: Option<Arc<dyn OutboxAdmin>>,
}

impl Default for Opening {
    fn default() -> Self {
        Self {
            token: Some(TOKEN),
            policy: Policy { settling: Settling::Webhook, ..Policy::default() },
            key: KeyRequirement::Required,
            store_timeout: PATIENT,
            max_concurrent_batches: None,
            on_file: false,
            database: None,
            people: Directory::default(),
            outbox: None,
        }
    }
}

impl AdminApi {
    pub(crate) async fn open() -> Self {
        Self::with(Opening::default()).await
    }

    /// One admin per durable store: SQLite, and PostgreSQL.
    pub(crate) async fn on_durable_stores(opening: impl Fn() -> Opening) -> [Self; 2] {
        let database = Some(Database::without_records().await);
        [
            Self::with(Opening { on_file: true, ..opening() }).await,
            Self::with(Opening { database, ..opening() }).await,
        ]
    }

    /// One admin per store.
    pub(crate) async fn on_every_store() -> [Self; 2] {
        [Self::open().await, Self::with(Opening { on_file: true, ..Opening::default() }).await]
    }

    pub(crate) async fn with(opening: Opening) -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let directory = opening.on_file.then(|| tempfile::tempdir().unwrap());
        let mut outbox = opening.outbox;
        let store = match (&directory, &opening.database) {
            (_, Some(database)) => {
                let store = PgStore::connect(&database.url()).await.unwrap();
                outbox = outbox.or(Some(Arc::new(PgOutbox::of(&store))));
                FaultyStore::over(store)
            }
            (Some(directory), None) => {
                let store = SqliteStore::open(directory.path().join("semel.db")).await.unwrap();
                outbox = outbox.or(Some(Arc::new(SqliteOutbox::of(&store))));
                FaultyStore::over(store)
            }
            (None, None) => FaultyStore::over(MemoryStore::with_clock(clock.clone())),
        };
        let max_concurrent_batches = opening.max_concurrent_batches.unwrap_or(store.max_concurrent_batches());
        let store = store.with_max_concurrent_batches(max_concurrent_batches);
        let metrics = Arc::new(Metrics::new(["create_payment", "create_refund"]));
        let observer: Arc<dyn Observer> = metrics.clone();
        let options = EngineOptions {
            store_timeout: opening.store_timeout,
            observer: Some(observer),
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(Arc::new(store.clone()), options);
        let till = Arc::new(Till::default());
        let policy = Arc::new(opening.policy);
        let protection = ValidProtection::try_from(Protection {
            key: opening.key,
            policy: Arc::clone(&policy),
            timeout: policy.lease / 2,
            ..Protection::default()
        })
        .unwrap();
        let layer = IdempotencyLayer::with_engine(engine.clone()).protect(move |parts| {
            let name = match parts.uri.path() {
                "/payments" => "create_payment".to_owned(),
                "/refunds" => "create_refund".to_owned(),
                // As the gateway without a configuration.
                path => format!("{} {path}", parts.method),
            };
            Some((name, protection.clone()))
        });
        let shop = Server::start(till.clone().router().layer(layer)).await;
        let readiness = Readiness::default();
        let admin = Admin {
            people: Directory {
                token: opening.token.map(|token| Secret::new(token).unwrap()),
                ..opening.people
            },
            policies: Arc::new(move |_| Arc::clone(&policy)),
            readiness: readiness.clone(),
            outbox,
            ..Admin::new(engine.clone(), metrics)
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let admin = Server::accepting(listener, |listener| async move {
            admin::serve(listener, admin, std::future::pending()).await.unwrap();
        });
        let _database = opening.database;
        Self { admin, shop, till, engine, store, clock, readiness, _directory: directory, _database }
    }

    /// Asks the admin, with the token.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        with_token(get(path)).send(&self.admin).await
    }

    pub(crate) async fn resolve(&self, id: OperationId, body: impl Into<String>) -> Answer {
        with_token(resolve(id, body)).send(&self.admin).await
    }

    /// A customer's request.
    pub(crate) async fn pay(&self, ask: &Ask) -> Answer {
        ask.send(&self.shop).await
    }

    /// A payment whose outcome is unknown: the service said so.
    pub(crate) async fn doubtful(&self, key: &str) -> OperationId {
        let answer = self.pay(&Ask::payment().key(key).answered_with("semel-outcome", "unknown")).await;
        assert_eq!(answer.status, 504);
        answer.operation_id().parse().unwrap()
    }

    pub(crate) async fn record(&self, id: OperationId) -> Record {
        self.engine.find(id).await.unwrap().1.unwrap()
    }

    /// What a line of `/metrics` says, without its name and labels.
    pub(crate) async fn metric(&self, line: &str) -> f64 {
        let text = get("/metrics").send(&self.admin).await;
        value(text.text(), line).unwrap_or_else(|| panic!("{line} is missing in {}", text.text()))
    }

    /// A counter of the operation that most requests ask for.
    pub(crate) async fn counter(&self, name: &str) -> u64 {
        let line = format!("api_idempotency_{name}_total{{operation=\"create_payment\"}}");
        self.metric(&line).await as u64
    }
}

/// The value of this series in a scrape.
pub(crate) fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

pub(crate) fn get(path: &str) -> Ask {
    Ask::new("GET", path).line("Host: localhost")
}

pub(crate) fn resolve(id: OperationId, body: impl Into<String>) -> Ask {
    Ask::new("POST", &format!("/v1/operations/{id}/resolve")).line("Host: localhost").body(body.into())
}

pub(crate) fn with_token(ask: Ask) -> Ask {
    ask.header("Authorization", format!("Bearer {TOKEN}"))
}

/// The code of a problem, which has all that a problem of the admin API has to have.
pub(crate) fn problem(answer: &Answer) -> String {
    let problem = answer.json();
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    assert_eq!(problem["status"], answer.status);
    assert!(problem["title"].is_string() && problem["type"].is_string());
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 15), "{problem}");
    problem["code"].as_str().unwrap().to_owned()
}
