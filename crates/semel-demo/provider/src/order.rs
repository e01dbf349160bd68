//! What a client asks for: the headers and the body of a request to charge or to refund, checked.

use crate::entry::{Object, Terms, WebhookResponse};
use crate::money::{Amount, Currency};
use axum::http::{HeaderMap, HeaderName};
use serde::Deserialize;
use uuid::Uuid;

const IDENTITY: HeaderName = HeaderName::from_static("idempotency-key");
const ATTEMPT: HeaderName = HeaderName::from_static("attempt");
const OPERATION: HeaderName = HeaderName::from_static("semel-operation-id");

const LONGEST_IDENTITY: usize = 255;
const LONGEST_REFERENCE: usize = 255;

/// The body of a request.
///
/// Unknown members are refused: a misspelt one must not be left out in silence where money is concerned.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Command {
    charge_id: Option<String>,
    amount: Amount,
    currency: Currency,
    reference: String,
    webhook_response: Option<WebhookResponse>,
    webhook_response_declined: Option<WebhookResponse>,
}

/// A charge or a refund that is to be made.
pub(crate) struct Order {
    /// The name that it will have.
    pub(crate) id: String,
    pub(crate) object: Object,
    pub(crate) identity: String,
    pub(crate) attempt: u32,
    pub(crate) terms: Terms,
    pub(crate) operation_id: Option<String>,
    pub(crate) when_succeeded: Option<WebhookResponse>,
    pub(crate) when_declined: Option<WebhookResponse>,
}

/// What is wrong with a request.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Malformed {
    pub(crate) code: &'static str,
    pub(crate) detail: String,
}

fn malformed<T>(code: &'static str, detail: impl Into<String>) -> Result<T, Malformed> {
    Err(Malformed { code, detail: detail.into() })
}

impl Order {
    pub(crate) fn read(object: Object, headers: &HeaderMap, command: Command) -> Result<Self, Malformed> {
        let Command { charge_id, amount, currency, reference, webhook_response, webhook_response_declined } =
            command;
        match (object, &charge_id) {
            (Object::Charge, Some(_)) => return malformed("request_invalid", "a charge has no charge_id"),
            (Object::Refund, None) => {
                return malformed("request_invalid", "a refund says in charge_id which charge it gives back");
            }
            _ => {}
        }
        if !(1..=LONGEST_REFERENCE).contains(&reference.len()) || reference.chars().any(char::is_control) {
            let detail = format!("a reference has 1 to {LONGEST_REFERENCE} bytes, and no control characters");
            return malformed("request_invalid", detail);
        }
        for response in [&webhook_response, &webhook_response_declined].into_iter().flatten() {
            if !(200..=599).contains(&response.status) {
                return malformed("request_invalid", "the status of a webhook response is from 200 to 599");
            }
        }
        let prefix = match object {
            Object::Charge => "ch",
            Object::Refund => "re",
        };
        Ok(Self {
            id: format!("{prefix}_{}", Uuid::now_v7().simple()),
            object,
            identity: identity(headers)?,
            attempt: attempt(headers)?,
            terms: Terms { charge_id, amount, currency, reference },
            operation_id: operation_id(headers)?,
            when_succeeded: webhook_response,
            when_declined: webhook_response_declined,
        })
    }
}

fn identity(headers: &HeaderMap) -> Result<String, Malformed> {
    let Some(value) = headers.get(IDENTITY) else {
        return malformed("identity_missing", "this request has no identity: send an Idempotency-Key");
    };
    check_identity(value.as_bytes())
}

/// An identity is any text that is not too long.
pub(crate) fn check_identity(bytes: &[u8]) -> Result<String, Malformed> {
    match std::str::from_utf8(bytes) {
        Ok(identity) if (1..=LONGEST_IDENTITY).contains(&identity.len()) => Ok(identity.to_owned()),
        _ => malformed("identity_invalid", format!("an identity has 1 to {LONGEST_IDENTITY} bytes of UTF-8")),
    }
}

fn attempt(headers: &HeaderMap) -> Result<u32, Malformed> {
    let Some(value) = headers.get(ATTEMPT) else { return Ok(1) };
    match value.to_str().ok().and_then(|text| text.parse().ok()) {
        Some(attempt) if attempt > 0 => Ok(attempt),
        _ => malformed("attempt_invalid", "Attempt is a number from 1 up"),
    }
}

fn operation_id(headers: &HeaderMap) -> Result<Option<String>, Malformed> {
    let Some(value) = headers.get(OPERATION) else { return Ok(None) };
    match value.to_str().ok().and_then(|text| Uuid::try_parse(text).ok()) {
        Some(id) => Ok(Some(id.to_string())),
        None => malformed("operation_id_invalid", "Semel-Operation-Id is a UUID"),
    }
}
