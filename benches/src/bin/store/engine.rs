//! Our side: whole operations through the engine.

use semel::fingerprint::{Command, Recipe};
use semel::{Body, Decision, Engine, Incoming, Outcome, Policy, RecordKey, StoredResponse};
use semel_sqlite::SqliteStore;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

pub(crate) struct Side {
    engine: Engine,
    store: SqliteStore,
    policy: Arc<Policy>,
    recipe: Arc<Recipe>,
}

/// What a measurement came to.
pub(crate) struct Measured {
    pairs: usize,
    elapsed: Duration,
    latencies: Vec<Duration>,
    commits: u64,
    items: u64,
}

impl Measured {
    pub(crate) fn pairs_per_second(&self) -> f64 {
        self.pairs as f64 / self.elapsed.as_secs_f64()
    }

    /// How long each pair took, in microseconds.
    pub(crate) fn micros(&self) -> impl Iterator<Item = f64> {
        self.latencies.iter().map(|latency| latency.as_secs_f64() * 1e6)
    }

    pub(crate) fn items_per_commit(&self) -> usize {
        (self.items / self.commits.max(1)).max(2) as usize
    }
}

/// What both sides store as the answer.
pub(crate) fn response() -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Body::Stored(vec![b'x'; 200].into()),
        schema_version: None,
    }
}

impl Side {
    pub(crate) async fn open(path: &Path) -> Result<Self, Box<dyn std::error::Error>> {
        let store = SqliteStore::open(path).await?;
        Ok(Self {
            engine: Engine::new(store.clone()),
            store,
            policy: Arc::new(Policy::default()),
            recipe: Arc::new(Recipe::builder().command("create_payment/1").build()?),
        })
    }

    pub(crate) async fn run(&self, callers: usize, span: Duration) -> Measured {
        let before = self.store.stats();
        let begun = Instant::now();
        let callers: Vec<_> = (0..callers)
            .map(|_| {
                let (engine, policy, recipe) =
                    (self.engine.clone(), self.policy.clone(), self.recipe.clone());
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    while begun.elapsed() < span {
                        let pair = Instant::now();
                        one_pair(&engine, &policy, &recipe).await;
                        latencies.push(pair.elapsed());
                    }
                    latencies
                })
            })
            .collect();
        let mut latencies = Vec::new();
        for caller in callers {
            latencies.extend(caller.await.unwrap_or_default());
        }
        let after = self.store.stats();
        Measured {
            pairs: latencies.len(),
            elapsed: begun.elapsed(),
            latencies,
            commits: after.commits - before.commits,
            items: after.items - before.items,
        }
    }
}

async fn one_pair(engine: &Engine, policy: &Arc<Policy>, recipe: &Arc<Recipe>) {
    let command = serde_json::json!({ "amount": "10.00", "currency": "EUR", "reference": "invoice-7781" });
    let Ok(command) = Command::new(recipe.clone(), None, &command) else { return };
    let incoming = Incoming {
        key: RecordKey::new("acc_1", "create_payment", Uuid::new_v4().to_string()),
        subject: &command,
        policy: policy.clone(),
    };
    match engine.begin(incoming).await {
        Ok(Decision::Execute(ticket)) => {
            let completed = Outcome::Completed { response: Some(response()), resource: None };
            if let Err(error) = ticket.finish(completed).await {
                eprintln!("not stored: {error}");
            }
        }
        other => eprintln!("not executed: {other:?}"),
    }
}
