//! What an operator says about an unknown outcome, read strictly: what is settled wrongly cannot be settled again.

use super::word::{self, InvalidWord};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use semel::transition::Evidence;
use semel::{Body, Resource, StoreResponse, StoredResponse};
use semel_tower::{CannotKeep, KeptHeaders};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The body of a resolve request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resolution {
    outcome: Outcome,
    reason: String,
    response: Option<ResponseDocument>,
    resource: Option<ResourceDocument>,
    operator: Option<String>,
    /// The attempt that the operator looked into; without it, the one that is there.
    pub(super) attempt: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Completed,
    Failed,
    NotExecuted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceDocument {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

/// An answer that retries are to get, as a person, a poll or a webhook spells it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponseDocument {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    body_base64: Option<String>,
    schema_version: Option<String>,
}

/// Why an answer cannot be kept for retries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidResponse {
    /// No final answer has such a status.
    #[error("`status` {0} is no status of an answer: it is a number from 200 to 599")]
    Status(u16),
    /// It is no name of a header field, or no value of one.
    #[error("`headers`: {0:?} is no header field, or its value is none")]
    Header(String),
    /// Two spellings of one name.
    #[error("`headers`: `{0}` is given twice")]
    HeaderTwice(HeaderName),
    /// It must never be replayed.
    #[error("`headers`: {0}")]
    CannotKeep(#[from] CannotKeep),
    /// Both spellings of the body.
    #[error("`body` and `body_base64` are both given: give one of them")]
    TwoBodies,
    /// It is not base64.
    #[error("`body_base64` is not standard base64 with padding")]
    Base64,
}

impl TryFrom<ResponseDocument> for StoredResponse {
    type Error = InvalidResponse;

    fn try_from(document: ResponseDocument) -> Result<Self, InvalidResponse> {
        if !(200..=599).contains(&document.status) {
            return Err(InvalidResponse::Status(document.status));
        }
        let body = match (document.body, document.body_base64) {
            (Some(_), Some(_)) => return Err(InvalidResponse::TwoBodies),
            (Some(text), None) => Bytes::from(text),
            (None, Some(text)) => Bytes::from(STANDARD.decode(text).map_err(|_| InvalidResponse::Base64)?),
            (None, None) => Bytes::new(),
        };
        let mut headers: Vec<(String, Bytes)> = Vec::new();
        for (name, value) in document.headers {
            let field = (HeaderName::try_from(&name), HeaderValue::try_from(value));
            let (Ok(name), Ok(value)) = field else { return Err(InvalidResponse::Header(name)) };
            KeptHeaders::default().and([name.clone()])?;
            if headers.iter().any(|(given, _)| name == given.as_str()) {
                return Err(InvalidResponse::HeaderTwice(name));
            }
            headers.push((name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        }
        let schema_version = document.schema_version;
        Ok(Self { status: document.status, headers, body: Body::Stored(body), schema_version })
    }
}

/// Why a resolution cannot be what it says.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidResolution {
    #[error(
        "the body has to be JSON: {{\"outcome\": \"completed\" | \"failed\" | \"not_executed\", \"reason\": \"…\"}}, and for \
         the first two a \"response\" if there is one: {0}"
    )]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Word(#[from] InvalidWord),
    #[error(
        "`response` and `resource` go with completed and failed; after not_executed the next request executes, and its own \
         answer counts"
    )]
    NothingToKeep,
    #[error("`resource` has to have a type and an id")]
    Resource,
    #[error("`response`: {0}")]
    Response(#[from] InvalidResponse),
}

/// A resolution that makes sense.
pub(super) struct Verdict {
    pub(super) evidence: Evidence,
    pub(super) outcome: &'static str,
    pub(super) reason: String,
    pub(super) operator: String,
}

impl Resolution {
    pub(super) fn from_json(body: &[u8]) -> Result<Self, InvalidResolution> {
        Ok(serde_json::from_slice(body)?)
    }

    /// What it says, checked, and reduced to what the operation's rules keep of an answer.
    pub(super) fn verdict(self, keep: StoreResponse) -> Result<Verdict, InvalidResolution> {
        let (reason, operator) = (word::reason(&self.reason)?, word::operator(self.operator)?);
        let response = self.response.map(StoredResponse::try_from).transpose()?.map(|given| keep.kept(given));
        let resource = self.resource.map(ResourceDocument::checked).transpose()?;
        let (evidence, outcome) = match self.outcome {
            Outcome::Completed => (Evidence::Completed { response, resource }, "completed"),
            Outcome::Failed => (Evidence::Failed { response, resource }, "failed"),
            Outcome::NotExecuted if response.is_some() || resource.is_some() => {
                return Err(InvalidResolution::NothingToKeep);
            }
            Outcome::NotExecuted => (Evidence::NotExecuted, "not_executed"),
        };
        Ok(Verdict { evidence, outcome, reason, operator })
    }
}

impl ResourceDocument {
    fn checked(self) -> Result<Resource, InvalidResolution> {
        if self.kind.trim().is_empty() || self.id.trim().is_empty() {
            return Err(InvalidResolution::Resource);
        }
        Ok(Resource { kind: self.kind, id: self.id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(json: &str) -> Result<Verdict, InvalidResolution> {
        Resolution::from_json(json.as_bytes())?.verdict(StoreResponse::Full)
    }

    fn refused(json: &str) -> String {
        verdict(json).err().unwrap_or_else(|| panic!("taken: {json}")).to_string()
    }

    #[test]
    fn a_completion_keeps_the_answer_that_retries_get() {
        let verdict = verdict(
            r#"{"outcome":"completed","reason":" seen at the bank ","operator":"ada","resource":{"type":"payment","id":"pay_1"},
               "response":{"status":201,"headers":{"Content-Type":"application/json"},"body":"{}","schema_version":"v2"}}"#,
        )
        .unwrap();
        assert_eq!((verdict.reason.as_str(), verdict.operator.as_str()), ("seen at the bank", "ada"));
        let response = StoredResponse {
            status: 201,
            headers: vec![("content-type".into(), Bytes::from_static(b"application/json"))],
            body: Body::Stored(Bytes::from_static(b"{}")),
            schema_version: Some("v2".into()),
        };
        let resource = Some(Resource { kind: "payment".into(), id: "pay_1".into() });
        assert_eq!(verdict.evidence, Evidence::Completed { response: Some(response), resource });
    }

    #[test]
    fn bytes_come_as_base64() {
        let given =
            r#"{"outcome":"failed","reason":"declined","response":{"status":402,"body_base64":"AP8="}}"#;
        let Evidence::Failed { response: Some(response), .. } = verdict(given).unwrap().evidence else {
            panic!("it failed")
        };
        assert_eq!(response.body, Body::Stored(Bytes::from_static(&[0, 255])));
        let by_reference = Resolution::from_json(given.as_bytes()).unwrap().verdict(StoreResponse::Reference);
        let Evidence::Failed { response: Some(response), .. } = by_reference.unwrap().evidence else {
            panic!("it failed")
        };
        assert_eq!((response.status, response.body), (402, Body::NotStored), "the policy keeps no bodies");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_is_wrong() {
        for (json, said) in [
            ("", "has to be JSON"),
            (r#"{"outcome":"completed"}"#, "missing field `reason`"),
            (r#"{"outcome":"completed","reason":"  "}"#, "`reason` says nothing"),
            (r#"{"outcome":"done","reason":"x"}"#, "unknown variant `done`"),
            (r#"{"outcome":"completed","reason":"x","respnse":{}}"#, "unknown field `respnse`"),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"bdy":""}}"#,
                "unknown field `bdy`",
            ),
            (r#"{"outcome":"completed","reason":"x","response":{"status":100}}"#, "from 200 to 599"),
            (r#"{"outcome":"completed","reason":"x","response":{"status":600}}"#, "from 200 to 599"),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"body":"","body_base64":""}}"#,
                "both",
            ),
            (r#"{"outcome":"completed","reason":"x","response":{"status":201,"body_base64":"?"}}"#, "base64"),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"headers":{"Set-Cookie":"a=b"}}}"#,
                "`set-cookie` cannot be kept",
            ),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"headers":{"a b":"c"}}}"#,
                "\"a b\" is no header field",
            ),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"headers":{"ETag":"1","etag":"2"}}}"#,
                "`etag` is given twice",
            ),
            (
                r#"{"outcome":"not_executed","reason":"x","response":{"status":201}}"#,
                "the next request executes",
            ),
            (r#"{"outcome":"failed","reason":"x","operator":"a\nb"}"#, "`operator` has to be a name"),
            (
                r#"{"outcome":"failed","reason":"x","resource":{"type":"","id":"1"}}"#,
                "`resource` has to have",
            ),
            (r#"{"outcome":"failed","reason":"x","attempt":-1}"#, "invalid value"),
        ] {
            assert!(refused(json).contains(said), "{json}: {}", refused(json));
        }
        let long = format!(r#"{{"outcome":"failed","reason":"{}"}}"#, "x".repeat(2_001));
        assert!(refused(&long).contains("`reason` is too long"));
    }
}
