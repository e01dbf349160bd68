//! The bodies of the built-in profiles.

use super::super::{Code, Profile};
use super::refusal::Refusal;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;

/// The body of a refusal, as clients of the profile read it.
pub(super) fn body(profile: Profile, refusal: &Refusal<'_>) -> Bytes {
    match profile {
        Profile::Ietf => json(&ProblemDocument::of(refusal)),
        Profile::Stripe => json(&Enveloped { error: StripeError::of(refusal) }),
        Profile::Acp => json(&AcpError::of(refusal)),
        Profile::Ucp => json(&UcpError { code: &ucp_code(refusal), content: refusal.detail }),
        Profile::Adcp => json(&AdcpErrors { errors: [AdcpError::of(refusal)] }),
        Profile::Iceberg => json(&Enveloped { error: IcebergError::of(refusal) }),
    }
}

/// Strings, numbers and flags, written to memory: there is nothing here that can fail. If it did, the status and the headers would
/// still say the essential.
fn json(document: &impl Serialize) -> Bytes {
    serde_json::to_vec(document).map(Bytes::from).unwrap_or_default()
}

#[derive(Serialize)]
struct Enveloped<T> {
    error: T,
}

/// RFC 9457. Members in the order in which a person wants to read them; those that say nothing here are absent, never `null`.
#[derive(Serialize)]
struct ProblemDocument<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    safe_new_key: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<Made<'a>>,
}

#[derive(Serialize)]
struct Made<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    id: &'a str,
}

impl<'a> ProblemDocument<'a> {
    fn of(refusal: &'a Refusal<'_>) -> Self {
        Self {
            kind: refusal.page,
            title: refusal.title,
            status: refusal.status.as_u16(),
            detail: refusal.detail,
            code: refusal.code.map(Code::as_str),
            retryable: refusal.retryable,
            safe_new_key: refusal.safe_new_key,
            operation_id: refusal.operation_id.as_deref(),
            operation_state: refusal.operation_state,
            expires_at: refusal.expires_at.as_deref(),
            upstream_status: refusal.upstream_status,
            resource: refusal.resource.map(|made| Made { kind: &made.kind, id: &made.id }),
        }
    }
}

/// Without `error` in its body an answer is a success to stripe-node, whatever the status.
#[derive(Serialize)]
struct StripeError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: String,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    doc_url: Option<&'a str>,
}

impl<'a> StripeError<'a> {
    fn of(refusal: &'a Refusal<'_>) -> Self {
        let kind = match refusal.code {
            Some(Code::KeyReused | Code::KeyExpired) => "idempotency_error",
            Some(Code::OutcomeUnknown | Code::ResponseNotStored) => "api_error",
            _ if refusal.status.is_server_error() => "api_error",
            _ => "invalid_request_error",
        };
        let code = match refusal.code {
            Some(Code::InProgress) => "idempotency_key_in_use".to_owned(),
            _ if refusal.status == StatusCode::TOO_MANY_REQUESTS => "rate_limit".to_owned(),
            _ => refusal.code_text(),
        };
        Self { kind, code, message: refusal.detail, doc_url: refusal.code.map(|_| refusal.page) }
    }
}

/// Flat, and with no other members.
#[derive(Serialize)]
struct AcpError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: String,
    message: &'a str,
}

impl<'a> AcpError<'a> {
    fn of(refusal: &'a Refusal<'_>) -> Self {
        let kind = match refusal.code {
            Some(Code::OutcomeUnknown | Code::ResponseNotStored | Code::RecordDamaged) => "processing_error",
            _ if refusal.status.is_server_error() || refusal.status == StatusCode::TOO_MANY_REQUESTS => {
                "service_unavailable"
            }
            _ => "invalid_request",
        };
        let code = match refusal.code {
            Some(Code::KeyReused) => "idempotency_conflict".to_owned(),
            Some(Code::InProgress) => "idempotency_in_flight".to_owned(),
            Some(Code::KeyMissing) => "idempotency_key_required".to_owned(),
            _ => refusal.code_text(),
        };
        Self { kind, code, message: refusal.detail }
    }
}

#[derive(Serialize)]
struct UcpError<'a> {
    code: &'a str,
    content: &'a str,
}

fn ucp_code(refusal: &Refusal<'_>) -> String {
    match refusal.code {
        Some(Code::KeyReused) => "idempotency_conflict".to_owned(),
        _ => refusal.code_text(),
    }
}

#[derive(Serialize)]
struct AdcpErrors<'a> {
    errors: [AdcpError<'a>; 1],
}

#[derive(Serialize)]
struct AdcpError<'a> {
    code: &'static str,
    message: &'a str,
    recovery: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

impl<'a> AdcpError<'a> {
    fn of(refusal: &'a Refusal<'_>) -> Self {
        let code = match refusal.code {
            Some(Code::KeyReused) => "IDEMPOTENCY_CONFLICT",
            Some(Code::InProgress) => "IDEMPOTENCY_IN_FLIGHT",
            Some(Code::KeyExpired) => "IDEMPOTENCY_EXPIRED",
            Some(Code::ScopeUnresolved) if refusal.status == StatusCode::UNAUTHORIZED => "AUTH_REQUIRED",
            _ if refusal.status == StatusCode::TOO_MANY_REQUESTS => "RATE_LIMITED",
            Some(Code::OutcomeUnknown | Code::ResponseNotStored) => "SERVICE_UNAVAILABLE",
            _ if refusal.status.is_server_error() => "SERVICE_UNAVAILABLE",
            _ => "INVALID_REQUEST",
        };
        let recovery = match refusal.code {
            _ if refusal.retryable => "transient",
            Some(Code::ResponseNotStored | Code::RecordDamaged) => "terminal",
            _ => "correctable",
        };
        Self { code, message: refusal.detail, recovery, retry_after: refusal.retry_after }
    }
}

/// Its clients read the `code` in the body, which has to be the status.
#[derive(Serialize)]
struct IcebergError<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    code: u16,
}

impl<'a> IcebergError<'a> {
    fn of(refusal: &'a Refusal<'_>) -> Self {
        let kind = match refusal.status {
            StatusCode::UNAUTHORIZED => "NotAuthorizedException",
            StatusCode::UNPROCESSABLE_ENTITY => "UnprocessableEntityException",
            status if status.is_server_error() => "CommitStateUnknownException",
            StatusCode::TOO_MANY_REQUESTS => "TooManyRequestsException",
            _ => "BadRequestException",
        };
        Self { message: refusal.detail, kind, code: refusal.status.as_u16() }
    }
}
