//! What a poll's answer says.

use crate::document::{InvalidDocument, ResourceDocument, ResponseDocument, SaidOutcome, Unkeepable};
use crate::reconcile::Finding;
use semel::Resource;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// Which form a document has. It is looked at by itself: whoever names an outcome, and says the rest in a way that is not understood,
/// must not be read as if no outcome were named.
#[derive(Deserialize)]
struct Form {
    /// Whether there is an outcome, whatever it says.
    #[serde(default, rename = "outcome", deserialize_with = "is_there")]
    is_long: bool,
}

/// Names the outcome.
#[derive(Deserialize)]
struct Long {
    outcome: String,
    response: Option<ResponseDocument>,
    resource: Option<ResourceDocument>,
}

/// Is the response itself.
#[derive(Deserialize)]
struct Short {
    #[serde(flatten)]
    response: ResponseDocument,
    resource: Option<ResourceDocument>,
}

/// True for whatever is there, `null` included.
fn is_there<'de, D: Deserializer<'de>>(member: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(member).map(|IgnoredAny| true)
}

/// The finding of an answer with status 200.
pub(super) fn read(body: &[u8], absence_is_proof: bool) -> Finding {
    understand(body, absence_is_proof).unwrap_or_else(|error| {
        tracing::warn!(%error, "the answer to a poll is no response document");
        Finding::Unclear("poll_answer_not_understood".into())
    })
}

fn understand(body: &[u8], absence_is_proof: bool) -> Result<Finding, InvalidDocument> {
    let Form { is_long } = serde_json::from_slice(body)?;
    let (said, response, resource) = if is_long {
        let Long { outcome, response, resource } = serde_json::from_slice(body)?;
        // Whoever answers may have outcomes of its own, such as `pending`: then nobody knows yet.
        let Some(said) = SaidOutcome::from_name(&outcome) else {
            return Ok(Finding::Unclear("poll_outcome_open".into()));
        };
        (Some(said), response, resource)
    } else {
        let Short { response, resource } = serde_json::from_slice(body)?;
        (None, Some(response), resource)
    };
    let response = response.map(|given| given.stored(Unkeepable::Dropped)).transpose()?;
    let resource = resource.map(Resource::try_from).transpose()?;
    let refused = response.as_ref().is_some_and(|response| response.status >= 400);
    Ok(match said {
        Some(SaidOutcome::NotExecuted) if absence_is_proof => Finding::Absent,
        Some(SaidOutcome::NotExecuted) => Finding::Unclear("poll_absent".into()),
        Some(SaidOutcome::Failed) => Finding::Failed { response, resource },
        Some(SaidOutcome::Completed) => Finding::Completed { response, resource },
        None if refused => Finding::Failed { response, resource },
        None => Finding::Completed { response, resource },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use semel::{Body, StoredResponse};

    fn response(status: u16, body: &'static [u8]) -> Option<StoredResponse> {
        let headers = Vec::new();
        Some(StoredResponse {
            status,
            headers,
            body: Body::Stored(Bytes::from_static(body)),
            schema_version: None,
        })
    }

    #[test]
    fn a_response_document_says_that_it_happened_or_was_refused() {
        let resource = || Some(Resource { kind: "payment".into(), id: "pay_1".into() });
        for (answer, finding) in [
            (
                r#"{"status":201,"body":"{}"}"#,
                Finding::Completed { response: response(201, b"{}"), resource: None },
            ),
            (
                r#"{"status":201,"body_base64":"AP8=","resource":{"type":"payment","id":"pay_1"},"and":"more"}"#,
                Finding::Completed { response: response(201, &[0, 255]), resource: resource() },
            ),
            (
                r#"{"status":402,"body":"no"}"#,
                Finding::Failed { response: response(402, b"no"), resource: None },
            ),
            (
                r#"{"outcome":"completed","response":{"status":201,"body":"x"},"resource":{"type":"payment","id":"pay_1"}}"#,
                Finding::Completed { response: response(201, b"x"), resource: resource() },
            ),
            (r#"{"outcome":"completed"}"#, Finding::Completed { response: None, resource: None }),
            (
                r#"{"outcome":"failed","response":{"status":200}}"#,
                Finding::Failed { response: response(200, b""), resource: None },
            ),
        ] {
            assert_eq!(read(answer.as_bytes(), false), finding, "{answer}");
        }
    }

    #[test]
    fn an_answer_is_kept_with_its_headers_but_for_those_that_must_not_be_replayed() {
        let answer = r#"{"status":201,"headers":{"Content-Type":"text/plain","Set-Cookie":"a=b","X-Trace":"7"},"body":""}"#;
        let Finding::Completed { response: Some(response), .. } = read(answer.as_bytes(), false) else {
            panic!("it happened")
        };
        let names: Vec<_> = response.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["content-type", "x-trace"]);
    }

    #[test]
    fn what_is_not_said_leaves_it_open() {
        for answer in [
            "",
            "null",
            "[]",
            "{}",
            r#""completed""#,
            r#"{"status":"succeeded"}"#,
            r#"{"status":99}"#,
            r#"{"status":600}"#,
            r#"{"outcome":"pending"}"#,
            r#"{"outcome":"pending","status":201}"#,
            r#"{"status":200,"outcome":"pending","response":"waiting for the bank"}"#,
            r#"{"status":200,"outcome":"failed","response":{"status":402,"body":{"error":"declined"}}}"#,
            r#"{"status":200,"outcome":null}"#,
            r#"{"outcome":7,"status":201}"#,
            r#"{"outcome":"pending","outcome":"completed"}"#,
            r#"{"status":402,"status":201}"#,
            r#"["completed"]"#,
            r#"["completed",null,null]"#,
            r#"{"status":201}x"#,
            r#"{"status":201,"body":"","body_base64":""}"#,
            r#"{"status":201,"body":{}}"#,
            r#"{"status":201,"headers":{"a b":"c"}}"#,
            r#"{"status":201,"body_base64":"?"}"#,
            r#"{"status":201,"headers":{"ETag":"1","etag":"2"}}"#,
            r#"{"outcome":"not_executed"}"#,
        ] {
            assert!(matches!(read(answer.as_bytes(), false), Finding::Unclear(_)), "{answer}");
        }
        assert_eq!(read(br#"{"outcome":"not_executed"}"#, true), Finding::Absent);
    }
}
