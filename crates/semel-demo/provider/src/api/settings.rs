//! Changing how the provider behaves while it runs.

use super::answer::ApiError;
use crate::settings::{Change, Settings};
use crate::state::ProviderState;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use std::sync::Arc;

/// The settings in force; the secret of the webhook is not shown.
pub(super) async fn show(State(shared): State<Arc<ProviderState>>) -> Json<Settings> {
    Json(shared.settings.borrow().clone())
}

pub(super) async fn change(
    State(shared): State<Arc<ProviderState>>,
    change: Result<Json<Change>, JsonRejection>,
) -> Result<Json<Settings>, ApiError> {
    let Json(change) = change?;
    let starts_again = change.is_about_fates();
    let mut applied = Ok(());
    // Under the lock of the settings: of two changes at the same time none is lost.
    shared.settings.send_if_modified(|settings| match change.apply(settings) {
        Ok(changed) => {
            *settings = changed;
            if starts_again {
                shared.fates.start_again();
            }
            true
        }
        Err(invalid) => {
            applied = Err(ApiError::invalid(invalid.to_string()));
            false
        }
    });
    applied?;
    Ok(show(State(shared)).await)
}
