//! What clients are told.

use crate::book::Refusal;
use crate::entry::Entry;
use crate::ledger::LedgerFailed;
use crate::order::Malformed;
use crate::receipt::Receipt;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

const REPLAYED: &str = "idempotent-replayed";

/// Why there is no receipt to show.
pub(crate) enum ApiError {
    Malformed(Malformed),
    Refused(Refusal),
    NothingKnown { identity: String, attempt: u32 },
    NotSupported,
    Rejected,
    FailedOnPurpose,
    TooManyStalls,
    Ledger(LedgerFailed),
    Broken(String),
}

impl ApiError {
    pub(crate) fn invalid(detail: impl Into<String>) -> Self {
        Self::Malformed(Malformed { code: "request_invalid", detail: detail.into() })
    }
}

impl From<Malformed> for ApiError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl From<LedgerFailed> for ApiError {
    fn from(failed: LedgerFailed) -> Self {
        Self::Ledger(failed)
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::invalid(rejection.body_text())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // Whoever takes an absence for a proof has to see that it is ours, and about this very attempt.
        let about = match &self {
            Self::NothingKnown { identity, attempt } => Some((identity.clone(), *attempt)),
            _ => None,
        };
        let (status, code, detail) = match self {
            Self::Malformed(Malformed { code, detail }) => (StatusCode::BAD_REQUEST, code, detail),
            Self::Refused(Refusal::Sealed { up_to }) => {
                let detail = format!(
                    "This identity was reported as unknown: attempts up to {up_to} no longer have an effect."
                );
                (StatusCode::CONFLICT, "sealed", detail)
            }
            Self::Refused(Refusal::OtherTerms) => {
                let detail = "This identity was used with other terms: use another one.";
                (StatusCode::UNPROCESSABLE_ENTITY, "identity_reused", detail.to_owned())
            }
            Self::Refused(Refusal::NoSuchCharge) => {
                (StatusCode::NOT_FOUND, "charge_not_found", "No charge has this id.".to_owned())
            }
            Self::Refused(Refusal::MoreThanTheCharge) => {
                let detail = "A refund needs the currency of its charge and may not exceed its amount.";
                (StatusCode::UNPROCESSABLE_ENTITY, "refund_too_large", detail.to_owned())
            }
            Self::NothingKnown { attempt, .. } => {
                let detail = format!("Nothing is known, and attempts up to {attempt} will have no effect.");
                (StatusCode::NOT_FOUND, "not_found", detail)
            }
            Self::NotSupported => {
                let detail = "This provider has no lookup by identity.";
                (StatusCode::NOT_IMPLEMENTED, "not_supported", detail.to_owned())
            }
            Self::Rejected => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "Nothing was done. Try again later.".to_owned(),
            ),
            Self::FailedOnPurpose => {
                (StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Something went wrong.".to_owned())
            }
            Self::TooManyStalls => {
                let detail = "Nothing was done: too many requests are stalled already.";
                (StatusCode::SERVICE_UNAVAILABLE, "too_many_stalls", detail.to_owned())
            }
            Self::Ledger(failed) => (StatusCode::INTERNAL_SERVER_ERROR, "ledger_failed", failed.to_string()),
            Self::Broken(detail) => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error", detail),
        };
        let mut document = json!({ "code": code, "detail": detail });
        if let Some((identity, attempt)) = about {
            document["identity"] = identity.into();
            document["attempt"] = attempt.into();
        }
        (status, Json(document)).into_response()
    }
}

/// How a receipt came about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    First,
    Again,
    AskedFor,
}

/// The receipt of an entry.
pub(crate) fn receipt(entry: &Entry, occasion: Occasion) -> Result<Response, ApiError> {
    let broken = |what: &str| ApiError::Broken(what.to_owned());
    let (transaction, outcome) = entry.transaction().ok_or_else(|| broken("an entry without a receipt"))?;
    let Receipt { status, body } =
        Receipt::of(transaction, outcome).map_err(|error| broken(&error.to_string()))?;
    let status = match occasion {
        Occasion::AskedFor => StatusCode::OK,
        Occasion::First | Occasion::Again => {
            StatusCode::from_u16(status).map_err(|error| broken(&error.to_string()))?
        }
    };
    let mut response = (status, [(CONTENT_TYPE, "application/json")], body).into_response();
    if occasion == Occasion::Again {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}
