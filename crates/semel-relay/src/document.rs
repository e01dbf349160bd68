//! What others say about an outcome, as JSON: the answer to a poll, or the body of a webhook.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use semel::{Body, Resource, StoredResponse};
use semel_tower::KeptHeaders;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What became of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SaidOutcome {
    /// It happened.
    Completed,
    /// It was refused for good.
    Failed,
    /// It did not happen.
    NotExecuted,
}

impl SaidOutcome {
    /// The outcome of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Completed, Self::Failed, Self::NotExecuted].into_iter().find(|said| said.as_str() == name)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::NotExecuted => "not_executed",
        }
    }
}

/// An answer that retries are to get. Members that are not known are passed over: the document is somebody else's.
#[derive(Deserialize)]
pub(crate) struct ResponseDocument {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_base64: Option<String>,
    schema_version: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ResourceDocument {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

/// Why a document says nothing about an outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidDocument {
    #[error("it is not JSON of the form that is expected: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`status` {0} is no status of an answer: it is a number from 200 to 599")]
    Status(u16),
    #[error("`headers`: {0:?} is no header field, or its value is none")]
    Header(String),
    #[error("`headers`: `{0}` is given twice")]
    HeaderTwice(HeaderName),
    #[error("`body` and `body_base64` are both given: give one of them")]
    TwoBodies,
    #[error("`body_base64` is not standard base64 with padding")]
    Base64,
    #[error("`resource` has to have a type and an id")]
    Resource,
}

impl TryFrom<ResponseDocument> for StoredResponse {
    type Error = InvalidDocument;

    fn try_from(document: ResponseDocument) -> Result<Self, InvalidDocument> {
        if !(200..=599).contains(&document.status) {
            return Err(InvalidDocument::Status(document.status));
        }
        let body = match (document.body, document.body_base64) {
            (Some(_), Some(_)) => return Err(InvalidDocument::TwoBodies),
            (Some(text), None) => Bytes::from(text),
            (None, Some(text)) => Bytes::from(STANDARD.decode(text).map_err(|_| InvalidDocument::Base64)?),
            (None, None) => Bytes::new(),
        };
        let mut headers: Vec<(String, Bytes)> = Vec::new();
        for (name, value) in document.headers {
            let field = (HeaderName::try_from(&name), HeaderValue::try_from(value));
            let (Ok(name), Ok(value)) = field else { return Err(InvalidDocument::Header(name)) };
            // A cookie or a hop-by-hop field came along with the rest of an answer. It is no reason to leave the outcome unknown.
            if KeptHeaders::default().and([name.clone()]).is_err() {
                continue;
            }
            if headers.iter().any(|(given, _)| name == given.as_str()) {
                return Err(InvalidDocument::HeaderTwice(name));
            }
            headers.push((name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        }
        let schema_version = document.schema_version;
        Ok(Self { status: document.status, headers, body: Body::Stored(body), schema_version })
    }
}

impl TryFrom<ResourceDocument> for Resource {
    type Error = InvalidDocument;

    fn try_from(document: ResourceDocument) -> Result<Self, InvalidDocument> {
        if document.kind.trim().is_empty() || document.id.trim().is_empty() {
            return Err(InvalidDocument::Resource);
        }
        Ok(Self { kind: document.kind, id: document.id })
    }
}
