//! What an operator is told when something is in the way: RFC 9457 documents, as clients get them.

use super::document::Operation;
use super::event::UnpublishedEvent;
use crate::acts::{ActError, MovedOn, Seen};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use semel::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

/// A problem, and what else its answer says. Boxed: it is the rare case of a result.
#[derive(Debug)]
pub(super) struct AdminProblem(Box<Told>);

#[derive(Debug)]
struct Told {
    status: StatusCode,
    document: ProblemDocument,
    challenge: Option<&'static str>,
}

/// A problem document (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemDocument {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The reason phrase of the status.
    title: &'static str,
    status: u16,
    /// What is wrong, and what to do.
    detail: String,
    /// A stable code for programs.
    #[schema(example = "admin_parameter_invalid")]
    code: &'static str,
    /// The parameter that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// The operation as it is now, where its state is the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<Operation>,
    /// The event as it is now, where its state is the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<UnpublishedEvent>,
    /// The settings of a new configuration that a running process cannot change.
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<Vec<&'static str>>,
    /// All that is wrong with a new configuration, as a compiler would show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<String>,
}

impl AdminProblem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        let document = ProblemDocument {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Problem"),
            status: status.as_u16(),
            detail: detail.into(),
            code,
            parameter: None,
            operation: None,
            event: None,
            settings: None,
            report: None,
        };
        Self(Box::new(Told { status, document, challenge: None }))
    }

    pub(super) fn about_operation(mut self, operation: Operation) -> Self {
        self.0.document.operation = Some(operation);
        self
    }

    pub(super) fn about_event(mut self, event: UnpublishedEvent) -> Self {
        self.0.document.event = Some(event);
        self
    }

    pub(super) fn about_settings(mut self, settings: Vec<&'static str>) -> Self {
        self.0.document.settings = Some(settings);
        self
    }

    pub(super) fn reported(mut self, report: Option<String>) -> Self {
        self.0.document.report = report;
        self
    }

    /// A token is required.
    pub(super) fn unauthorized(challenge: &'static str, detail: &str) -> Self {
        let mut problem = Self::new(StatusCode::UNAUTHORIZED, "admin_unauthorized", detail);
        problem.0.challenge = Some(challenge);
        problem
    }

    pub(super) fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "admin_forbidden", detail)
    }

    /// A query parameter is invalid.
    pub(super) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        let mut problem = Self::new(StatusCode::BAD_REQUEST, "admin_parameter_invalid", detail);
        problem.0.document.parameter = Some(name.to_owned());
        problem
    }

    /// The body is invalid.
    pub(super) fn body(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "admin_body_invalid", detail)
    }

    pub(super) fn body_too_large(most: usize) -> Self {
        let detail = format!("The body was cut off, or is larger than {most} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "admin_body_too_large", detail)
    }

    pub(super) fn body_too_slow() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "admin_body_too_slow",
            "The body did not arrive in time. Send the request again.",
        )
    }

    pub(super) fn too_busy() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "admin_too_busy",
            "Too many requests are in flight; only probes are served. Try again later.",
        )
    }

    pub(super) fn no_such_operation() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_such_operation",
            "No operation has this id: it never existed, was released, or was purged.",
        )
    }

    pub(super) fn no_such_event() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_such_event",
            "No event in the outbox has this id: it was published, dropped, or never appended.",
        )
    }

    pub(super) fn no_outbox() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_outbox",
            "This store has no outbox: sqlite: and postgres:// stores have one.",
        )
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "admin_no_such_path",
            "No such path. The paths are /healthz, /readyz, /metrics, /v1/openapi.json, /v1/whoami, /v1/operations, \
             /v1/operations/{id}, /v1/operations/{id}/resolve, /v1/operations/{id}/poll, /v1/resolutions, /v1/outbox, /v1/outbox/{id}, /v1/outbox/{id}/requeue, \
             /v1/outbox/{id}/drop, /v1/audit, /v1/audit/export, /v1/clock, /v1/clock/accept, /v1/reload and /v1/stats.",
        )
    }

    pub(super) fn method_not_allowed() -> Self {
        let detail =
            "Use POST to resolve, poll, requeue, drop, reload and accept, and GET for everything else.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "admin_method_not_allowed", detail)
    }
}

impl From<ActError> for AdminProblem {
    fn from(error: ActError) -> Self {
        let (code, detail) = (error.code(), error.to_string());
        match error {
            ActError::Forbidden { .. } | ActError::Limited => Self::forbidden(detail),
            ActError::NoSuchOperation => Self::no_such_operation(),
            ActError::NoSuchEvent => Self::no_such_event(),
            ActError::NoOutbox => Self::no_outbox(),
            ActError::Invalid(detail) => Self::body(detail),
            ActError::AttemptMissing { outcome, seen } => attempt_missing(outcome, *seen),
            ActError::Moved { why, seen } => {
                let Seen { record, now } = *seen;
                let (state, attempt, version) = (record.state.as_str(), record.attempt, record.version);
                let detail = match why {
                    MovedOn::NotUnknown => format!("{detail} The operation is {state}."),
                    MovedOn::OtherAttempt => format!("{detail} The operation is now at attempt {attempt}."),
                    MovedOn::OtherVersion => {
                        format!("{detail} It is now {state}, at attempt {attempt} and version {version}.")
                    }
                    MovedOn::LeaseRunning => detail,
                };
                Self::new(StatusCode::CONFLICT, code, detail).about_operation(Operation::of(record, now))
            }
            ActError::NotPolled => Self::new(StatusCode::CONFLICT, code, detail),
            ActError::NotDeadLetter(entry) => {
                Self::new(StatusCode::CONFLICT, code, detail).about_event((*entry).into())
            }
            ActError::Unknown(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail),
            ActError::Reload(error) => error.into(),
            ActError::Store(error) => error.into(),
        }
    }
}

/// The statement is about one attempt, and the request does not say which. Nothing was changed.
fn attempt_missing(outcome: &str, seen: Seen) -> AdminProblem {
    let (id, attempt) = (seen.record.operation_id, seen.record.attempt);
    let detail = format!(
        "`{outcome}` applies to one attempt only, and the body does not name it. The operation is at attempt {attempt} \
         now: `semel operations show {id}`, or GET /v1/operations/{id}, has its history. If that is the attempt that you \
         checked, add \"attempt\": {attempt}."
    );
    AdminProblem::new(StatusCode::BAD_REQUEST, "admin_attempt_missing", detail)
        .about_operation(Operation::of(seen.record, seen.now))
}

impl AdminProblem {
    /// The parameter of this name is not the place of a page.
    pub(super) fn not_a_cursor(name: &str) -> Self {
        Self::parameter(name, "Must be the next_cursor of the previous page, unchanged.")
    }
}

/// The store did not answer.
impl From<StoreError> for AdminProblem {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::InvalidCursor) {
            return Self::not_a_cursor("cursor");
        }
        tracing::error!(%error, "admin API: the store failed");
        match error {
            StoreError::Damaged(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "admin_record_damaged",
                "The stored record is damaged. The log names it.",
            ),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "admin_store_unavailable",
                "The store is unavailable. Try again later; the log has the reason.",
            ),
        }
    }
}

impl IntoResponse for AdminProblem {
    fn into_response(self) -> Response {
        let Told { status, document, challenge } = *self.0;
        // Texts, numbers and flags, written to memory: nothing here can fail.
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(challenge) = challenge {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
