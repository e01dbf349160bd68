//! What the client gets when there is no verdict to show.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use semel::PhaseError;
use semel_tower::{CompleteError, OUTCOME, PhasesError};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why the payment's transaction failed. All of it was rolled back.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Reply(#[from] serde_json::Error),
}

#[derive(Debug)]
pub enum PaymentError {
    /// A phase was interrupted. Whatever is answered here, the layer knows what it means.
    Interrupted(BoxError),
    /// Our own database failed, and rolled back. The next attempt resumes after the last recovery point.
    Database(BoxError),
    /// The last commit failed.
    NotCompleted(CompleteError<DatabaseError>),
}

impl From<PhasesError> for PaymentError {
    fn from(error: PhasesError) -> Self {
        Self::Interrupted(error.into())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<PhaseError<E>> for PaymentError {
    fn from(error: PhaseError<E>) -> Self {
        match error {
            PhaseError::Application(error) => Self::Database(error.into()),
            error => Self::Interrupted(error.into()),
        }
    }
}

impl IntoResponse for DatabaseError {
    fn into_response(self) -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, [(OUTCOME, "retryable")]).into_response()
    }
}

impl IntoResponse for PaymentError {
    fn into_response(self) -> Response {
        match self {
            Self::Interrupted(error) => {
                eprintln!("interrupted: {error}");
                StatusCode::SERVICE_UNAVAILABLE.into_response()
            }
            // Nothing was committed: a retry may execute.
            Self::Database(error) => {
                eprintln!("rolled back: {error}");
                (StatusCode::SERVICE_UNAVAILABLE, [(OUTCOME, "retryable")]).into_response()
            }
            Self::NotCompleted(error) => error.into_response(),
        }
    }
}
