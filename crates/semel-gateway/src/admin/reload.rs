//! `POST /v1/reload`: the configuration read anew, and what came of it.

use super::Shared;
use super::problem::AdminProblem;
use crate::reload::{ReloadError, Reloaded};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::json;
use std::sync::Arc;

pub(super) async fn reload(State(shared): State<Arc<Shared>>) -> Result<Response, AdminProblem> {
    let reload = shared.admin.reload.as_ref().ok_or(ReloadError::NoFile)?;
    let Reloaded { file, operations } = reload.now().await?;
    Ok(Json(json!({ "reloaded": true, "file": file, "operations": operations })).into_response())
}

impl From<ReloadError> for AdminProblem {
    fn from(error: ReloadError) -> Self {
        let detail = format!("The configuration in force stays: {error}.");
        match &error {
            ReloadError::NoFile => Self::new(StatusCode::CONFLICT, "admin_nothing_to_reload", detail),
            ReloadError::NeedsRestart { settings } => {
                Self::new(StatusCode::CONFLICT, "admin_needs_restart", detail)
                    .with("settings", settings.clone())
            }
            ReloadError::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, "admin_stopping", detail),
            ReloadError::Wrong(_) | ReloadError::Start(_) | ReloadError::Open(_) => {
                let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "admin_config_wrong", detail);
                match error.report() {
                    Some(report) => problem.with("report", report),
                    None => problem,
                }
            }
        }
    }
}
