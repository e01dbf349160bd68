//! The routes, and what they have in common.

mod answer;
mod ledger;
mod orders;
mod settings;
mod stalls;

use crate::state::ProviderState;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::sync::Arc;

/// Enough for an order and the two answers that it may bring along.
const LARGEST_BODY: usize = 64 * 1024;

pub(crate) fn routes(shared: Arc<ProviderState>) -> Router {
    Router::new()
        .route("/charges", post(orders::charge))
        .route("/refunds", post(orders::refund))
        .route("/charges/by-identity/{identity}", get(orders::ask_for_charge))
        .route("/refunds/by-identity/{identity}", get(orders::ask_for_refund))
        .route("/ledger", get(ledger::list))
        .route("/ledger/summary", get(ledger::summary))
        .route("/ledger/by-identity/{identity}", get(ledger::by_identity))
        .route("/settings", get(settings::show).put(settings::change))
        .route("/stalls", get(stalls::watch).delete(stalls::let_go))
        .route("/healthz", get(|| async { StatusCode::OK }))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(shared)
}
