//! What an operator says about an unknown outcome, read strictly: what is settled wrongly cannot be settled again.

use crate::acts::{Stated, Statement};
use semel_worker::{ResourceDocument, ResponseDocument};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The body of a resolve request.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Resolution {
    pub(super) outcome: Outcome,
    /// How the operator knows; kept in the history.
    #[schema(min_length = 1, max_length = 2000, pattern = r"\S")]
    pub(super) reason: String,
    /// The answer for retries; only with `completed` and `failed`. Without it, retries get `idempotency_response_not_stored`.
    pub(super) response: Option<StrictResponse>,
    /// The resource that was created; only with `completed` and `failed`.
    pub(super) resource: Option<StrictResource>,
    /// The operator's name, where several people share a token. It is logged, not authenticated; the history names the authenticated user.
    #[schema(schema_with = super::schemas::operator)]
    pub(super) operator: Option<String>,
    /// The attempt that the operator looked into. Required with `failed` and `not_executed`, which are about one attempt.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub(super) attempt: Option<u32>,
    /// The version that the operator looked at: if the operation was changed since, nothing is done.
    #[serde(default, deserialize_with = "whole_or_none")]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub(super) version: Option<u64>,
    /// Where else it is written about: kept in the audit.
    #[schema(max_length = 200, pattern = r"^[^\u0000-\u001f\u007f-\u009f]*$")]
    pub(super) ticket: Option<String>,
}

/// The outcome of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    Completed,
    Failed,
    NotExecuted,
}

// As a [`ResponseDocument`], but a person's slip of the pen is not passed over.
/// The answer for retries, with a body as text or as base64.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Response)]
pub(super) struct StrictResponse {
    #[schema(minimum = 200, maximum = 599)]
    #[serde(deserialize_with = "whole")]
    status: u16,
    #[serde(default, deserialize_with = "plain_fields")]
    #[schema(schema_with = super::schemas::header_fields)]
    headers: BTreeMap<String, String>,
    /// The body as text.
    body: Option<String>,
    /// The body as bytes: standard base64 with padding.
    #[schema(schema_with = super::schemas::base64)]
    body_base64: Option<String>,
    schema_version: Option<String>,
}

impl From<StrictResponse> for ResponseDocument {
    fn from(given: StrictResponse) -> Self {
        let StrictResponse { status, headers, body, body_base64, schema_version } = given;
        Self { status, headers, body, body_base64, schema_version }
    }
}

// As a [`ResourceDocument`], read as strictly.
/// The resource that an operation created or concerns.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NamedResource)]
pub(super) struct StrictResource {
    #[serde(rename = "type")]
    #[schema(min_length = 1, pattern = r"\S")]
    kind: String,
    #[schema(min_length = 1, pattern = r"\S")]
    id: String,
}

impl From<StrictResource> for ResourceDocument {
    fn from(given: StrictResource) -> Self {
        Self { kind: given.kind, id: given.id }
    }
}

/// The largest number that every reader of JSON keeps whole.
const LARGEST: u64 = (1 << 53) - 1;

/// `201.0` is as whole a number as `201`, in JSON's eyes.
pub(super) fn whole<'de, N: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<N, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "it is whole, and within these bounds"
    )]
    let spelled_out = || {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && (0.0..=LARGEST as f64).contains(&value)).then_some(value as u64)
    };
    // The description's int32 has a sign.
    let largest = if size_of::<N>() > 4 { LARGEST } else { i32::MAX.unsigned_abs().into() };
    let whole = number.as_u64().or_else(spelled_out).filter(|whole| *whole <= largest);
    let whole = whole.and_then(|whole| N::try_from(whole).ok());
    whole.ok_or_else(|| {
        D::Error::custom(format_args!("invalid value: {number} is not a whole number in range"))
    })
}

/// Header fields as people write them: names of letters, digits and hyphens, values of visible characters and spaces.
fn plain_fields<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let fields = BTreeMap::<String, String>::deserialize(from)?;
    let is_name = |name: &str| {
        let name = name.strip_prefix("trailer:").unwrap_or(name);
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_value = |value: &str| value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    match fields.iter().find(|(name, value)| !is_name(name) || !is_value(value)) {
        None => Ok(fields),
        Some((name, _)) => Err(D::Error::custom(format_args!(
            "`headers`: {name:?} is not a valid header field, or has an invalid value"
        ))),
    }
}

fn whole_or_none<'de, N: TryFrom<u64>, D: Deserializer<'de>>(from: D) -> Result<Option<N>, D::Error> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "N: TryFrom<u64>"))]
    struct Whole<N>(#[serde(deserialize_with = "whole")] N);
    Ok(Option::<Whole<N>>::deserialize(from)?.map(|whole| whole.0))
}

/// Why the body is no resolution.
#[derive(Debug, thiserror::Error)]
#[error(
    "the body must be JSON: {{\"outcome\": \"completed\" | \"failed\" | \"not_executed\", \"reason\": \"…\"}}, and for \
     the first two a \"response\" if there is one: {0}"
)]
pub(super) struct InvalidJson(#[from] serde_json::Error);

impl Resolution {
    pub(super) fn from_json(body: &[u8]) -> Result<Self, InvalidJson> {
        Ok(serde_json::from_slice(body)?)
    }

    /// What it states.
    pub(super) fn statement(self) -> Statement {
        Statement {
            outcome: match self.outcome {
                Outcome::Completed => Stated::Completed,
                Outcome::Failed => Stated::Failed,
                Outcome::NotExecuted => Stated::NotExecuted,
            },
            attempt: self.attempt,
            version: self.version,
            after_lease: false,
            reason: self.reason,
            ticket: self.ticket,
            claimed: self.operator,
            response: self.response.map(ResponseDocument::from),
            resource: self.resource.map(ResourceDocument::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acts::Checked;
    use bytes::Bytes;
    use semel::transition::Evidence;
    use semel::{Body, Resource, StoreResponse, StoredResponse};

    fn kept(json: &str, keep: StoreResponse) -> Result<Checked, String> {
        let resolution = Resolution::from_json(json.as_bytes()).map_err(|error| error.to_string())?;
        resolution.statement().checked(keep).map_err(|error| error.to_string())
    }

    fn verdict(json: &str) -> Result<Checked, String> {
        kept(json, StoreResponse::Full)
    }

    fn refused(json: &str) -> String {
        verdict(json).err().unwrap_or_else(|| panic!("taken: {json}"))
    }

    #[test]
    fn a_completion_keeps_the_answer_that_retries_get() {
        let verdict = verdict(
            r#"{"outcome":"completed","reason":" seen at the bank ","operator":"ada","resource":{"type":"payment","id":"pay_1"},
               "response":{"status":201,"headers":{"Content-Type":"application/json"},"body":"{}","schema_version":"v2"}}"#,
        )
        .unwrap();
        assert_eq!((verdict.reason.as_str(), verdict.claimed.as_deref()), ("seen at the bank", Some("ada")));
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
    fn the_answer_to_a_grpc_call_has_its_status_in_a_trailer() {
        let given = verdict(
            r#"{"outcome":"completed","reason":"seen","response":{"status":200,"headers":{"content-type":"application/grpc",
               "trailer:Grpc-Status":"0"},"body_base64":"AAAAAAA="}}"#,
        );
        let Evidence::Completed { response: Some(response), .. } = given.unwrap().evidence else {
            panic!("it was completed")
        };
        let names: Vec<_> = response.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "trailer:grpc-status"]);
        for (name, said) in [
            ("trailer:", "not a valid"),
            ("trailer:set-cookie", "cannot be kept"),
            ("trailer:a:b", "not a valid"),
        ] {
            let given = format!(
                r#"{{"outcome":"completed","reason":"x","response":{{"status":200,"headers":{{"{name}":"0"}}}}}}"#
            );
            assert!(refused(&given).contains(said), "{name}");
        }
    }

    #[test]
    fn bytes_come_as_base64() {
        let given =
            r#"{"outcome":"failed","reason":"declined","response":{"status":402,"body_base64":"AP8="}}"#;
        let Evidence::Failed { response: Some(response), .. } = verdict(given).unwrap().evidence else {
            panic!("it failed")
        };
        assert_eq!(response.body, Body::Stored(Bytes::from_static(&[0, 255])));
        let by_reference = kept(given, StoreResponse::Reference);
        let Evidence::Failed { response: Some(response), .. } = by_reference.unwrap().evidence else {
            panic!("it failed")
        };
        assert_eq!((response.status, response.body), (402, Body::NotStored), "the policy keeps no bodies");
    }

    #[test]
    fn failed_and_not_executed_are_true_of_one_attempt_alone() {
        for (outcome, lacks) in [("completed", false), ("failed", true), ("not_executed", true)] {
            let without = format!(r#"{{"outcome":"{outcome}","reason":"x"}}"#);
            let null = format!(r#"{{"outcome":"{outcome}","reason":"x","attempt":null}}"#);
            for given in [without, null] {
                assert_eq!(verdict(&given).unwrap().lacks_attempt(), lacks, "{given}");
            }
            let named = verdict(&format!(r#"{{"outcome":"{outcome}","reason":"x","attempt":2}}"#)).unwrap();
            assert_eq!((named.lacks_attempt(), named.attempt), (false, Some(2)));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_is_wrong() {
        for (json, said) in [
            ("", "must be JSON"),
            (r#"{"outcome":"completed"}"#, "missing field `reason`"),
            (r#"{"outcome":"completed","reason":"  "}"#, "`reason` is empty"),
            (r#"{"outcome":"done","reason":"x"}"#, "unknown variant `done`"),
            (r#"{"outcome":"completed","reason":"x","respnse":{}}"#, "unknown field `respnse`"),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"bdy":""}}"#,
                "unknown field `bdy`",
            ),
            (r#"{"outcome":"completed","reason":"x","response":{"status":100}}"#, "use 200 to 599"),
            (r#"{"outcome":"completed","reason":"x","response":{"status":600}}"#, "use 200 to 599"),
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
                "\"a b\" is not a valid header field",
            ),
            (
                r#"{"outcome":"completed","reason":"x","response":{"status":201,"headers":{"ETag":"1","etag":"2"}}}"#,
                "`etag` is given twice",
            ),
            (
                r#"{"outcome":"not_executed","reason":"x","response":{"status":201}}"#,
                "the next request executes",
            ),
            (r#"{"outcome":"failed","reason":"x","operator":"a\nb"}"#, "`operator` must be a name"),
            (r#"{"outcome":"failed","reason":"x","resource":{"type":"","id":"1"}}"#, "`resource` needs"),
            (r#"{"outcome":"failed","reason":"x","attempt":-1}"#, "invalid value"),
        ] {
            assert!(refused(json).contains(said), "{json}: {}", refused(json));
        }
        let long = format!(r#"{{"outcome":"failed","reason":"{}"}}"#, "x".repeat(2_001));
        assert!(refused(&long).contains("`reason` is too long"));
    }
}
