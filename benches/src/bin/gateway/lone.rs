//! How long the two commits of an operation take by themselves.

use semel::fingerprint::{Command, Recipe};
use semel::{Decision, Engine, Incoming, Outcome, Policy, RecordKey};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One operation after the other through the engine, each for so many microseconds.
pub(crate) async fn commits(engine: Engine, span: Duration) -> Result<Vec<f64>, Box<dyn Error>> {
    let recipe = Arc::new(Recipe::builder().command("bench/1").build()?);
    let command = Command::new(recipe, None, &serde_json::json!({ "amount": "10.00" }))?;
    let policy = Arc::new(Policy::default());
    let (start, mut micros) = (Instant::now(), Vec::new());
    while start.elapsed() < span {
        let key = RecordKey::new("tenant", "bench", uuid::Uuid::new_v4().to_string());
        let begun = Instant::now();
        let incoming = Incoming { key, subject: &command, policy: Arc::clone(&policy) };
        let Decision::Execute(ticket) = engine.begin(incoming).await? else {
            return Err("a new key was not new".into());
        };
        ticket.finish(Outcome::Completed { response: None, resource: None }).await?;
        micros.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    Ok(micros)
}
