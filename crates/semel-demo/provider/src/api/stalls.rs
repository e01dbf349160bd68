//! Watching requests that are kept waiting, and letting them go.

use super::answer::ApiError;
use crate::stall::StalledRequest;
use crate::state::ProviderState;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Deserialize)]
pub(super) struct Watched {
    #[serde(default)]
    at_least: usize,
}

pub(super) async fn watch(
    State(shared): State<Arc<ProviderState>>,
    watched: Result<Query<Watched>, QueryRejection>,
) -> Result<Json<StalledRequest>, ApiError> {
    let Query(Watched { at_least }) = watched?;
    Ok(Json(shared.stalls.at_least(at_least).await))
}

pub(super) async fn let_go(State(shared): State<Arc<ProviderState>>) -> Json<StalledRequest> {
    Json(shared.stalls.let_go())
}
