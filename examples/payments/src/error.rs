//! What clients are told when there is no payment to show: problem documents, as Semel's own, so that a client knows one form.
//!
//! Each answer also decides what becomes of the operation, and with it what a retry with the same key gets:
//!
//! | answer | the layer takes it for | a retry |
//! |---|---|---|
//! | 400, 401 | released: nothing happened, nothing is remembered | is a fresh request, also with another body |
//! | 402, 404, 409 | failed | gets the same answer |
//! | 503 with `Semel-Outcome: retryable` | retryable: nothing was written | executes |
//! | 503 after a phase that was interrupted | as the phase left it: retryable, or unknown | goes on, or is told so |

use crate::payment::{Amount, Payment};
use crate::verdict::NoAnswer;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use semel::PhaseError;
use semel_tower::{CompleteError, OUTCOME, PhasesError};
use serde_json::json;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no payment to show.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The command is not well formed.
    Invalid(String),
    /// Nobody knows whose request it is.
    NoAccount,
    /// The account has no such payment.
    NotFound,
    /// The account's payment of this merchant reference has other terms.
    ReferenceTaken(Box<Payment>),
    /// There is no such payment to give back.
    NoSuchPayment,
    /// The payment is not paid: there is nothing to give back.
    NotPaid,
    /// More is asked back than was paid and not yet given back.
    TooMuchBack { left: Amount },
    /// Payments could not be read.
    Unreadable(BoxError),
    /// A payment was not made, and nothing was written.
    NothingWritten(BoxError),
    /// The operation was interrupted between or in its phases. The layer knows what became of it, and answers if it is unknown.
    Interrupted(BoxError),
    /// A payment was perhaps made, and this handler cannot say more.
    InDoubt(BoxError),
}

/// Why a handler gave its transaction up. Whatever fails in it rolls all of it back.
#[derive(Debug)]
pub(crate) enum GivenUp {
    ReferenceTaken(Box<Payment>),
    NoSuchPayment,
    NotPaid,
    TooMuchBack { left: Amount },
    Failed(BoxError),
}

impl From<GivenUp> for ApiError {
    fn from(why: GivenUp) -> Self {
        match why {
            GivenUp::ReferenceTaken(payment) => Self::ReferenceTaken(payment),
            GivenUp::NoSuchPayment => Self::NoSuchPayment,
            GivenUp::NotPaid => Self::NotPaid,
            GivenUp::TooMuchBack { left } => Self::TooMuchBack { left },
            GivenUp::Failed(error) => Self::NothingWritten(error),
        }
    }
}

impl From<PhaseError<GivenUp>> for ApiError {
    fn from(error: PhaseError<GivenUp>) -> Self {
        match error {
            PhaseError::Application(why) => why.into(),
            error => Self::Interrupted(error.to_string().into()),
        }
    }
}

impl From<PhaseError<NoAnswer>> for ApiError {
    fn from(error: PhaseError<NoAnswer>) -> Self {
        match error {
            PhaseError::Call(error) => Self::Interrupted(error.into()),
            error => Self::Interrupted(error.to_string().into()),
        }
    }
}

impl From<PhasesError> for ApiError {
    fn from(error: PhasesError) -> Self {
        Self::Interrupted(error.into())
    }
}

impl From<CompleteError> for ApiError {
    fn from(error: CompleteError) -> Self {
        match error {
            CompleteError::Store(error) => Self::NothingWritten(error.into()),
            error => Self::InDoubt(error.into()),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for GivenUp {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl From<CompleteError<GivenUp>> for ApiError {
    fn from(error: CompleteError<GivenUp>) -> Self {
        match error {
            CompleteError::Application(why) => why.into(),
            CompleteError::Store(error) => Self::NothingWritten(error.into()),
            // Somebody else has finished the operation, or nobody knows: the layer answers for it, whatever is said here.
            CompleteError::Refused(_) | CompleteError::Unknown | CompleteError::Finished => {
                Self::InDoubt(error.to_string().into())
            }
            _ => Self::InDoubt("the payment was not completed".into()),
        }
    }
}

/// All of them are 400: axum's own 422 would be taken for the payment's failure, stored, and replayed.
impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::Invalid(rejection.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code, detail) = match &self {
            Self::Invalid(detail) => (StatusCode::BAD_REQUEST, "payment_invalid", detail.clone()),
            Self::NoAccount => {
                let detail = "Say whose payment it is: send the header X-Account-Id.";
                (StatusCode::UNAUTHORIZED, "account_missing", detail.into())
            }
            Self::NotFound => (
                StatusCode::NOT_FOUND,
                "payment_not_found",
                "This account has no payment with this id.".into(),
            ),
            Self::ReferenceTaken(payment) => {
                let detail = format!(
                    "This merchant reference was paid before, with other terms: {} {} as {}. Check which of the two is right, \
                     and use another reference for another payment.",
                    payment.terms.amount,
                    payment.terms.currency.as_str(),
                    payment.id
                );
                (StatusCode::CONFLICT, "merchant_reference_taken", detail)
            }
            Self::NoSuchPayment => {
                let detail = "This account has no payment with this id: there is nothing to give back.";
                (StatusCode::NOT_FOUND, "payment_not_found", detail.into())
            }
            Self::NotPaid => {
                let detail = "This payment is not paid, or not yet: there is nothing to give back.";
                (StatusCode::CONFLICT, "payment_not_completed", detail.into())
            }
            Self::TooMuchBack { left } => {
                let detail = format!("No more than was paid can be given back, and {left} is left of it.");
                (StatusCode::CONFLICT, "refund_exceeds_payment", detail)
            }
            Self::Unreadable(error) => {
                tracing::error!(%error, "payments could not be read");
                (StatusCode::SERVICE_UNAVAILABLE, "database_unavailable", "Try again after a while.".into())
            }
            Self::NothingWritten(error) => {
                tracing::error!(%error, "the database failed; nothing was written");
                let detail = "Nothing was done. Send the same request again, with the same key.";
                (StatusCode::SERVICE_UNAVAILABLE, "database_unavailable", detail.into())
            }
            Self::Interrupted(error) => {
                tracing::error!(%error, "the operation was interrupted");
                let detail = "This was interrupted before it was done. Send the same request again, with the same key.";
                (StatusCode::SERVICE_UNAVAILABLE, "interrupted", detail.into())
            }
            Self::InDoubt(error) => {
                tracing::error!(%error, "it is not known whether the payment was made");
                let detail =
                    "It is not known whether this was done. Send the same request again, with the same key.";
                (StatusCode::INTERNAL_SERVER_ERROR, "outcome_unknown", detail.into())
            }
        };
        let title = status.canonical_reason();
        let problem = json!({ "title": title, "status": status.as_u16(), "code": code, "detail": detail });
        let mut response = (status, Json(problem)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match self {
            // A bare 503 might come from somebody behind this service, and would be taken for unknown. This one knows better.
            Self::NothingWritten(_) => headers.insert(OUTCOME, HeaderValue::from_static("retryable")),
            Self::InDoubt(_) => headers.insert(OUTCOME, HeaderValue::from_static("unknown")),
            _ => None,
        };
        response
    }
}
