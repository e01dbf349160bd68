//! Whole operations through the engine: what every measurement of a store has on our side.

use semel::fingerprint::{Command, Recipe, RecipeError};
use semel::{Body, Decision, Engine, Incoming, Outcome, Policy, RecordKey, StoredResponse};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Callers of one engine.
pub struct Operations {
    engine: Engine,
    policy: Arc<Policy>,
    recipe: Arc<Recipe>,
}

/// What a measurement came to.
pub struct Measured {
    elapsed: Duration,
    latencies: Vec<Duration>,
}

impl Measured {
    /// Operations that were reserved and completed, per second.
    #[must_use]
    pub fn pairs_per_second(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// How long each one took, in microseconds.
    pub fn micros(&self) -> impl Iterator<Item = f64> {
        self.latencies.iter().map(|latency| latency.as_secs_f64() * 1e6)
    }
}

/// What both sides store as the answer.
#[must_use]
pub fn response() -> StoredResponse {
    StoredResponse {
        status: 201,
        headers: vec![("content-type".into(), "application/json".into())],
        body: Body::Stored(vec![b'x'; 200].into()),
        schema_version: None,
    }
}

impl Operations {
    /// Operations through this engine.
    ///
    /// # Errors
    /// The recipe of their fingerprints cannot be made.
    pub fn through(engine: Engine) -> Result<Self, RecipeError> {
        Ok(Self {
            engine,
            policy: Arc::new(Policy::default()),
            recipe: Arc::new(Recipe::builder().command("create_payment/1").build()?),
        })
    }

    /// The same by other rules.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// So many callers, each one operation after the other, for so long.
    pub async fn run(&self, callers: usize, span: Duration) -> Measured {
        self.run_at(None, callers, span).await
    }

    /// The same at a steady rate of so many operations a second; as fast as it goes if `None`.
    pub async fn run_at(&self, rate: Option<f64>, callers: usize, span: Duration) -> Measured {
        let begun = Instant::now();
        let begins = Arc::new(AtomicU64::new(0));
        let callers: Vec<_> = (0..callers)
            .map(|_| {
                let (engine, policy, recipe) =
                    (self.engine.clone(), self.policy.clone(), self.recipe.clone());
                let begins = Arc::clone(&begins);
                tokio::spawn(async move {
                    let mut latencies = Vec::new();
                    while begun.elapsed() < span {
                        if let Some(rate) = rate {
                            let number = begins.fetch_add(1, Ordering::Relaxed) as f64;
                            tokio::time::sleep_until((begun + Duration::from_secs_f64(number / rate)).into())
                                .await;
                        }
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
        Measured { elapsed: begun.elapsed(), latencies }
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
