//! In the background: leases watched, doubt settled by polls and webhooks, windows closed.

use crate::config::{Config, WebhookConfig};
use crate::route::{ForAll, ReconcileConfig, Routes};
use semel::{Engine, StoreError};
use semel_worker::{
    InvalidPoll, InvalidSecret, OperationRules, PollOptions, ReaperOptions, Rules, WebhookIntake,
    WebhookSecret, Worker, WorkerOptions,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Why doubt cannot be settled as the configuration says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettlingError {
    /// An address cannot be asked at.
    #[error(transparent)]
    Poll(#[from] InvalidPoll),
    /// The secret of a webhook source is malformed.
    #[error("the webhook source \"{source_name}\" has an invalid secret")]
    Secret {
        /// Whose.
        source_name: String,
        /// What is wrong with it.
        #[source]
        error: InvalidSecret,
    },
}

/// What workers and webhooks need to know of each operation.
///
/// An operation that is no longer declared is left alone: another gateway on the same store may still declare it.
pub(crate) fn rules(routes: &Arc<Routes>) -> Result<Rules, SettlingError> {
    let rules_of = |policy, reconcile: Option<&ReconcileConfig>| {
        let rules = OperationRules::new(policy);
        let Some(reconcile) = reconcile else { return Ok(rules) };
        let poll = PollOptions {
            tls: reconcile.tls.clone(),
            every: reconcile.every,
            attempts: reconcile.attempts,
            absence_is_proof: reconcile.absence_is_proof,
            ..PollOptions::new(reconcile.poll.to_string())
        };
        Ok::<_, SettlingError>(rules.asking(poll.asking()?))
    };
    if let Some(ForAll { protection, reconcile, .. }) = routes.for_all() {
        let rules = rules_of(Arc::clone(&protection.policy), reconcile.as_ref())?;
        return Ok(Arc::new(move |_| Some(rules.clone())));
    }
    let mut declared = HashMap::new();
    for route in routes.routes() {
        let rules = rules_of(Arc::clone(&route.protection.policy), route.reconcile.as_ref())?;
        declared.insert(route.label().to_owned(), rules);
    }
    let routes = Arc::clone(routes);
    Ok(Arc::new(move |operation| declared.get(routes.of_operation(operation)?.label()).cloned()))
}

/// The worker that the configuration asks for.
pub(crate) fn worker(engine: Engine, config: &Config, rules: &Rules) -> Worker {
    let reaper = ReaperOptions { forget: config.worker.forget, ..ReaperOptions::default() };
    let options = WorkerOptions { reaper: Some(reaper), ..WorkerOptions::default() };
    let rules = Arc::clone(rules);
    let (audited, retention) = (engine.clone(), config.worker.audit_retention);
    Worker::new(engine, options).other_operations(move |operation| rules(operation)).chore(
        "audit retention",
        PURGE_AUDIT_EVERY,
        move || {
            let engine = audited.clone();
            async move { purge_audit(&engine, retention).await }
        },
    )
}

/// How long after one look at the audit the next one comes.
const PURGE_AUDIT_EVERY: Duration = Duration::from_secs(60);

/// How many entries of the audit go in one commit.
const PURGE_AUDIT_BATCH: usize = 500;

/// Removes old entries of the audit, a few at a time: others have the store in between.
async fn purge_audit(engine: &Engine, retention: Duration) -> Result<(), StoreError> {
    while engine.store().purge_audit(retention, PURGE_AUDIT_BATCH).await? == PURGE_AUDIT_BATCH as u64 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Takes in what the configured sources tell.
pub(crate) fn webhooks(
    engine: Engine,
    sources: &[WebhookConfig],
    rules: &Rules,
) -> Result<WebhookIntake, SettlingError> {
    let mut intake = WebhookIntake::new(engine, Arc::clone(rules));
    for WebhookConfig { source, secrets } in sources {
        let parsed = secrets.iter().map(|secret| WebhookSecret::parse(secret.reveal()));
        let parsed: Result<Vec<_>, _> = parsed.collect();
        let secrets = parsed.map_err(|error| SettlingError::Secret { source_name: source.clone(), error })?;
        intake = intake.source(source.clone(), secrets);
    }
    Ok(intake)
}
