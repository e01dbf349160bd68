//! What others say about an outcome, as JSON: the answer to a poll, the body of a webhook, or a person's word.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use semel::headers::TRAILER_PREFIX;
use semel::{Body, Resource, StoredResponse};
use semel_tower::{CannotKeep, KeptHeaders};
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

/// An answer that retries are to get. Unknown members are ignored: the document is made by another program.
///
/// ```
/// use semel_worker::{ResponseDocument, Unkeepable};
///
/// let document: ResponseDocument = serde_json::from_str(r#"{"status": 201, "body": "paid"}"#)?;
/// assert_eq!(document.stored(Unkeepable::Refused)?.status, 201);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Deserialize)]
pub struct ResponseDocument {
    /// The status, from 200 to 599.
    pub status: u16,
    /// The header fields; trailers, such as those of a gRPC call, as `trailer:grpc-status`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body, where it is text,
    pub body: Option<String>,
    /// or as standard base64 with padding, where it is bytes.
    pub body_base64: Option<String>,
    /// The version of the body's form.
    pub schema_version: Option<String>,
}

/// What an operation made, or concerns.
#[derive(Clone, Deserialize)]
pub struct ResourceDocument {
    /// What kind of thing it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one.
    pub id: String,
}

/// What becomes of header fields that must never be replayed: cookies, credentials, hop-by-hop fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unkeepable {
    /// They are left out: they came along with the rest of an answer, and are no reason to leave an outcome unknown.
    Dropped,
    /// The whole document is refused: its author can correct it.
    Refused,
}

/// Why a document says nothing about an outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDocument {
    /// It is no such JSON.
    #[error("not JSON in the expected form: {0}")]
    Json(#[from] serde_json::Error),
    /// No final answer has such a status.
    #[error("`status` {0} is not a final status: use 200 to 599")]
    Status(u16),
    /// It is no name of a header field, or no value of one.
    #[error("`headers`: {0:?} is not a valid header field, or has an invalid value")]
    Header(String),
    /// Two spellings of one name.
    #[error("`headers`: `{0}` is given twice")]
    HeaderTwice(HeaderName),
    /// It must never be replayed.
    #[error("`headers`: {0}")]
    CannotKeep(#[from] CannotKeep),
    /// Both spellings of the body.
    #[error("`body` and `body_base64` are both given: give only one")]
    TwoBodies,
    /// It is not base64.
    #[error("`body_base64` is not standard base64 with padding")]
    Base64,
    /// It names nothing.
    #[error("`resource` needs a type and an id")]
    Resource,
}

impl ResponseDocument {
    /// The answer, as it is kept for retries.
    ///
    /// # Errors
    /// It cannot be an answer, or has what must not be kept and is to be refused for that.
    pub fn stored(self, unkeepable: Unkeepable) -> Result<StoredResponse, InvalidDocument> {
        if !(200..=599).contains(&self.status) {
            return Err(InvalidDocument::Status(self.status));
        }
        let body = match (self.body, self.body_base64) {
            (Some(_), Some(_)) => return Err(InvalidDocument::TwoBodies),
            (Some(text), None) => Bytes::from(text),
            (None, Some(text)) => Bytes::from(STANDARD.decode(text).map_err(|_| InvalidDocument::Base64)?),
            (None, None) => Bytes::new(),
        };
        let mut headers: Vec<(String, Bytes)> = Vec::new();
        for (name, value) in self.headers {
            // A gRPC call has its status there.
            let (prefix, field) = match name.strip_prefix(TRAILER_PREFIX) {
                Some(trailer) => (TRAILER_PREFIX, trailer),
                None => ("", name.as_str()),
            };
            let field = (HeaderName::try_from(field), HeaderValue::try_from(value));
            let (Ok(field), Ok(value)) = field else { return Err(InvalidDocument::Header(name)) };
            match (KeptHeaders::default().and([field.clone()]), unkeepable) {
                (Ok(_), _) => {}
                (Err(_), Unkeepable::Dropped) => continue,
                (Err(error), Unkeepable::Refused) => return Err(error.into()),
            }
            let name = format!("{prefix}{field}");
            if headers.iter().any(|(given, _)| *given == name) {
                return Err(InvalidDocument::HeaderTwice(field));
            }
            headers.push((name, Bytes::copy_from_slice(value.as_bytes())));
        }
        let schema_version = self.schema_version;
        Ok(StoredResponse { status: self.status, headers, body: Body::Stored(body), schema_version })
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
