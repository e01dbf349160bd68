//! For whoever starts, stops and routes: is the process alive, and should requests come here?

use super::Shared;
use crate::listener::core_threads::SignsOfLife;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use semel::clock::ClockRequest;
use semel::{Now, RecordKey, StoreError};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use utoipa::ToSchema;

/// Whether the process is ready for requests. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    stopping: Arc<AtomicBool>,
}

impl Readiness {
    /// From now on `/readyz` answers 503: the process is about to stop.
    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

/// Whether the process is alive: whether its core threads answer. Clones share their state.
#[derive(Clone, Default)]
pub struct Liveness {
    signs_of_life: Arc<OnceLock<SignsOfLife>>,
}

impl Liveness {
    /// From now on `/healthz` asks these threads.
    pub(crate) fn watch(&self, signs_of_life: SignsOfLife) {
        let _watched_already = self.signs_of_life.set(signs_of_life);
    }

    async fn stuck(&self) -> Vec<String> {
        match self.signs_of_life.get() {
            Some(signs_of_life) => signs_of_life.stuck().await,
            None => Vec::new(),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    healthy: bool,
    /// The core threads that do not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stuck: Vec<String>,
    /// The version of this program.
    version: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
struct ReadinessDocument {
    ready: bool,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// While a clock hold is open: by how many seconds the store's clock claims to be ahead. Requests are served, and nothing is purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_hold_seconds: Option<u64>,
}

/// The process is alive if all its core threads are.
#[utoipa::path(
    get, path = "/healthz", operation_id = "healthz", tag = "probes",
    responses(
        (status = 200, description = "Alive", body = Health),
        (status = 503, description = "A core thread is stuck: restart the process", body = Health),
    ),
    security(())
)]
pub(super) async fn healthz(State(shared): State<Arc<Shared>>) -> Response {
    let stuck = shared.admin.liveness.stuck().await;
    let healthy = stuck.is_empty();
    if !healthy {
        tracing::error!(threads = ?stuck, "core threads are stuck: requests on them are not served");
    }
    let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Health { healthy, stuck, version: env!("CARGO_PKG_VERSION") })).into_response()
}

/// Ready means that the store accepts writes, so that protected requests can be executed.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "probes",
    responses(
        (status = 200, description = "Ready for requests", body = ReadinessDocument),
        (status = 503, description = "Not ready: route requests elsewhere", body = ReadinessDocument),
    ),
    security(())
)]
pub(super) async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let (why, clock_hold_seconds) = if shared.admin.readiness.stopping.load(Ordering::Relaxed) {
        (Some("the process is stopping".to_owned()), None)
    } else {
        match store_trouble(&shared).await {
            Ok(now) => (None, now.is_held().then(|| now.latest.after(now.earliest).as_secs())),
            Err(why) => (Some(why), None),
        }
    };
    let status = if why.is_none() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(ReadinessDocument { ready: why.is_none(), why, clock_hold_seconds })).into_response()
}

async fn is_clock_wrong(shared: &Shared) -> bool {
    let looking = shared.admin.engine.store().clock(ClockRequest::Look);
    // A store that does not answer has kept the probe waiting once already.
    let report = tokio::time::timeout(Duration::from_secs(1), looking).await;
    matches!(report, Ok(Ok(report)) if report.wrong.is_some())
}

/// The store's time, or why the store is not available. No token is required, so the exact error is in the log only.
async fn store_trouble(shared: &Shared) -> Result<Now, String> {
    let engine = &shared.admin.engine;
    // A record that is never there: the store has to look, and finds nothing.
    let probe = RecordKey::new("semel", "readyz", "is-anybody-there");
    let error = match engine.store().read(&probe).await {
        Ok((now, _)) => return Ok(now),
        Err(error) => error,
    };
    tracing::warn!(%error, "not ready");
    Err(match error {
        StoreError::Damaged(_) => "the store's data is damaged: see the log".into(),
        StoreError::Unavailable(_) if is_clock_wrong(shared).await => {
            "the store's clock is not trusted: see `semel clock`".into()
        }
        _ => "the store is unavailable: see the log".into(),
    })
}
