//! What was counted, and what the store says is open: asked for by scrapers, by operators, and by whoever exports it.

use super::{Metrics, OpenOperations};
use semel::{Access, Engine, StoreError};
use semel_events::outbox::{Counts, OutboxAdmin, OutboxStats};
use semel_worker::WebhookIntake;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long a snapshot is reused: the store is asked no more often than this.
const FRESH: Duration = Duration::from_secs(5);

/// The last snapshot, and when it was taken.
#[derive(Default)]
pub(super) struct Last(Mutex<Option<(Instant, Taken)>>);

/// What the store said.
#[derive(Clone)]
pub(crate) struct Taken {
    pub(crate) open: Result<Arc<OpenOperations>, StoreError>,
    pub(crate) stats: Option<OutboxStats>,
}

/// Everything that there is to tell of a process, and of its store.
pub(crate) struct MetricsSnapshot {
    pub(crate) engine: Engine,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) webhooks: Option<Arc<WebhookIntake>>,
    pub(crate) outbox: Option<Arc<dyn OutboxAdmin>>,
    pub(crate) published: Option<Arc<Counts>>,
}

impl MetricsSnapshot {
    /// Everything, as Prometheus reads it. Without the store the counters are still there, and wanted more than ever.
    pub(crate) async fn text(&self) -> String {
        if let Some(intake) = &self.webhooks {
            self.metrics.set_webhooks(intake);
        }
        if let Some(counts) = &self.published {
            self.metrics.set_published(counts);
        }
        self.open(|_| self.metrics.render()).await
    }

    /// What is open. One caller asks the store; callers that come meanwhile wait for the same answer.
    ///
    /// `look` runs before the gauges are next updated.
    pub(crate) async fn open<T>(&self, look: impl FnOnce(Taken) -> T) -> T {
        let (engine, metrics) = (&self.engine, &self.metrics);
        let mut last = metrics.last.0.lock().await;
        if let Some((taken_at, taken)) = &*last
            && taken_at.elapsed() < FRESH
        {
            return look(taken.clone());
        }
        let taking = OpenOperations::take(engine.store(), |operation| metrics.label(operation));
        let patience = engine.store_timeout();
        let open = semel::bounded(Access::Read, patience, taking).await.map(Arc::new);
        if let Err(error) = &open {
            tracing::warn!(%error, "cannot read open operations from the store");
        }
        metrics.set_gauges(open.as_deref().ok());
        if let Ok(now) = engine.store().now().await {
            metrics.set_clock_hold(now.latest.after(now.earliest));
        }
        let stats = match &self.outbox {
            Some(outbox) => semel::bounded(Access::Read, patience, outbox.stats()).await.ok(),
            None => None,
        };
        metrics.set_outbox_stats(stats);
        let taken = Taken { open, stats };
        *last = Some((Instant::now(), taken.clone()));
        look(taken)
    }
}
