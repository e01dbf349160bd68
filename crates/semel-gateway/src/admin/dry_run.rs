//! A resolution that is only tried, as the admin API shows it.

use super::document::Operation;
use crate::acts::{DryRun, NextRetry};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use utoipa::ToSchema;

/// What a resolution would do. Nothing was changed.
#[derive(Serialize, ToSchema)]
#[schema(as = DryRun)]
pub(super) struct DryRunDocument {
    /// Always true.
    dry_run: bool,
    /// The operation as it would be.
    operation: Operation,
    next_retry: NextRetryDocument,
}

/// What the client's next retry would get.
#[derive(Serialize, ToSchema)]
#[schema(as = NextRetry)]
struct NextRetryDocument {
    /// Whether it would execute. If not, it would be answered as the other members say.
    executes: bool,
    /// The attempt that it would execute as.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<FieldDocument>>,
    /// The body as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The body as standard base64, where it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

/// A header field.
#[derive(Serialize, ToSchema)]
#[schema(as = HeaderField)]
struct FieldDocument {
    name: String,
    value: String,
}

impl From<DryRun> for DryRunDocument {
    fn from(run: DryRun) -> Self {
        Self {
            dry_run: true,
            operation: Operation::of(run.seen.record, run.seen.now),
            next_retry: run.next.into(),
        }
    }
}

impl From<NextRetry> for NextRetryDocument {
    fn from(next: NextRetry) -> Self {
        let none = Self {
            executes: true,
            attempt: None,
            status: None,
            headers: None,
            body: None,
            body_base64: None,
        };
        match next {
            NextRetry::Executes { attempt } => Self { attempt: Some(attempt), ..none },
            NextRetry::Answered { status, headers, body } => {
                let field = |(name, value): (String, bytes::Bytes)| FieldDocument {
                    name,
                    value: String::from_utf8_lossy(&value).into_owned(),
                };
                let (text, base64) = match std::str::from_utf8(&body) {
                    Ok(text) => (Some(text.to_owned()), None),
                    Err(_) => (None, Some(STANDARD.encode(&body))),
                };
                Self {
                    executes: false,
                    status: Some(status),
                    headers: Some(headers.into_iter().map(field).collect()),
                    body: text,
                    body_base64: base64,
                    ..none
                }
            }
        }
    }
}
