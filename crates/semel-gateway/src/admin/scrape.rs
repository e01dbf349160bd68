//! `/metrics` and `/v1/stats`: what was counted, and what the store says is open.

use super::Shared;
use super::problem::AdminProblem;
use crate::metrics::{CONTENT_TYPE, Census, Open};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use semel::StoreError;
use semel_relay::outbox::Outlook;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// For how long a census is good enough: however often it is scraped, the store is asked at this pace.
const FRESH: Duration = Duration::from_secs(5);

/// The last census, and when it was taken.
#[derive(Default)]
pub(super) struct Scrapes {
    last: Mutex<Option<(Instant, Taken)>>,
}

/// What the store said.
#[derive(Clone)]
struct Taken {
    census: Result<Arc<Census>, StoreError>,
    outlook: Option<Outlook>,
}

impl Shared {
    /// What is open. One caller asks the store; whoever comes meanwhile waits for the same answer.
    ///
    /// What `look` makes of it is made before anybody sets the gauges anew.
    async fn open<T>(&self, look: impl FnOnce(Taken) -> T) -> T {
        let mut last = self.scrapes.last.lock().await;
        if let Some((taken_at, taken)) = &*last
            && taken_at.elapsed() < FRESH
        {
            return look(taken.clone());
        }
        let (engine, metrics) = (&self.admin.engine, &self.admin.metrics);
        let taking = Census::take(&**engine.store(), |operation| metrics.label(operation).to_owned());
        let census = tokio::time::timeout(engine.store_timeout(), taking)
            .await
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the store did not answer in time".into())))
            .map(Arc::new);
        if let Err(error) = &census {
            tracing::warn!(%error, "the store does not say what is open");
        }
        metrics.set_gauges(census.as_deref().ok());
        let outlook = match &self.admin.outbox {
            Some(desk) => self.in_time(desk.outlook()).await.ok(),
            None => None,
        };
        metrics.set_outlook(outlook);
        let taken = Taken { census, outlook };
        *last = Some((Instant::now(), taken.clone()));
        look(taken)
    }
}

pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    if let Some(intake) = &shared.admin.webhooks {
        shared.admin.metrics.set_webhooks(intake);
    }
    if let Some(counts) = &shared.admin.published {
        shared.admin.metrics.set_published(counts);
    }
    // Without the store the counters are still there, and wanted more than ever.
    let text = shared.open(|_| shared.admin.metrics.render()).await;
    ([(http::header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

pub(super) async fn stats(State(shared): State<Arc<Shared>>) -> Result<Response, AdminProblem> {
    let Taken { census, outlook } = shared.open(|taken| taken).await;
    let census = census?;
    let operations: Map<String, Value> =
        census.operations.iter().map(|(label, open)| (label.clone(), document(*open))).collect();
    let mut stats = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "executing_here": shared.admin.engine.outstanding(),
        "complete": census.whole,
        "damaged": census.damaged,
        "operations": operations,
    });
    if let (Value::Object(stats), Value::Object(total)) = (&mut stats, document(census.total())) {
        stats.extend(total);
    }
    if let (Value::Object(stats), Some(outlook)) = (&mut stats, outlook) {
        let outbox = json!({
            "backlog": outlook.backlog,
            "oldest_seconds": outlook.oldest.as_secs_f64(),
            "dead_letters": outlook.dead_letters,
        });
        stats.insert("outbox".into(), outbox);
    }
    Ok(Json(stats).into_response())
}

fn document(open: Open) -> Value {
    json!({
        "in_progress": open.in_progress,
        "in_progress_oldest_seconds": open.in_progress_oldest.as_secs_f64(),
        "unknown": open.unknown,
        "unknown_oldest_seconds": open.unknown_oldest.as_secs_f64(),
        "dead_letters": open.dead_letters,
    })
}
