//! For whoever starts, stops and routes: is the process alive, and should requests come here?

use super::Shared;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use semel::{RecordKey, StoreError};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether requests should come here. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    stopping: Arc<AtomicBool>,
}

impl Readiness {
    /// From now on `/readyz` says no: the process is about to stop.
    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

/// The process is alive if it can say so.
pub(super) async fn healthz() -> Response {
    Json(json!({ "healthy": true, "version": env!("CARGO_PKG_VERSION") })).into_response()
}

/// Ready means: a protected request would not be refused for want of the store.
pub(super) async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let why = if shared.admin.readiness.stopping.load(Ordering::Relaxed) {
        Some("the process is stopping".to_owned())
    } else {
        store_trouble(&shared).await
    };
    match why {
        None => Json(json!({ "ready": true })).into_response(),
        Some(why) => {
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "ready": false, "why": why }))).into_response()
        }
    }
}

/// Why the store cannot be relied on now. Anybody may read it, so what exactly went wrong is for the log.
async fn store_trouble(shared: &Shared) -> Option<String> {
    let engine = &shared.admin.engine;
    let patience = engine.store_timeout();
    // A record that is never there: the store has to look, and finds nothing.
    let nobodys = RecordKey::new("semel", "readyz", "is-anybody-there");
    let error = match tokio::time::timeout(patience, engine.store().read(vec![nobodys])).await {
        Ok(Ok(_)) => return None,
        Err(_) => return Some(format!("the store did not answer within {patience:?}")),
        Ok(Err(error)) => error,
    };
    tracing::warn!(%error, "not ready");
    Some(match error {
        StoreError::Damaged(_) => "what the store holds is damaged; the log says more".into(),
        _ => "the store is not available; the log says more".into(),
    })
}
