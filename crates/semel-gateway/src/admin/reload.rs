//! `POST /v1/reload`: reloads the configuration and reports the result.

use super::Shared;
use super::openapi::Guarded;
use super::problem::{AdminProblem, ProblemDocument};
use crate::acts::Operator;
use crate::reload::{ReloadError, Reloaded};
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// The new configuration is in force.
#[derive(Serialize, ToSchema)]
#[schema(as = Reloaded)]
pub(super) struct ReloadedDocument {
    /// Always true: what was not is a problem.
    reloaded: bool,
    /// The file that was read.
    file: String,
    /// The operations that are declared now.
    operations: Vec<String>,
}

/// Reloads the configuration file.
#[utoipa::path(
    post, path = "/v1/reload", operation_id = "reload", tag = "probes",
    responses(
        (status = 200, description = "The new configuration is in force", body = ReloadedDocument),
        (status = 409, description = "No config file, or a change needs a restart; the current configuration stays in \
                                      force", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 422, description = "The file is invalid; the current configuration stays in force", body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, description = "The process is stopping", body = ProblemDocument, content_type = "application/problem+json"),
        Guarded,
    ),
    security(("token" = []))
)]
pub(super) async fn reload(
    State(shared): State<Arc<Shared>>,
    Extension(operator): Extension<Operator>,
) -> Result<Json<ReloadedDocument>, AdminProblem> {
    let Reloaded { file, operations } = shared.acts.reload(&operator).await?;
    Ok(Json(ReloadedDocument { reloaded: true, file, operations }))
}

impl From<ReloadError> for AdminProblem {
    fn from(error: ReloadError) -> Self {
        let detail = format!("The current configuration stays in force: {error}.");
        let code = error.code();
        match &error {
            ReloadError::NoFile => Self::new(StatusCode::CONFLICT, code, detail),
            ReloadError::NeedsRestart { settings } => {
                Self::new(StatusCode::CONFLICT, code, detail).about_settings(settings.clone())
            }
            ReloadError::Stopping => Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail),
            ReloadError::Wrong(_) | ReloadError::Start(_) | ReloadError::Open(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail).reported(error.report())
            }
        }
    }
}
