//! What a poll's answer says.

use super::about::{CONTRADICTION, Code, Head, NO_OUTCOME, Named};
use crate::document::{InvalidDocument, ResourceDocument, ResponseDocument, SaidOutcome, Unkeepable};
use crate::reconcile::{Finding, Question};
use http::{HeaderMap, StatusCode};
use semel::Resource;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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
    operation_id: Option<Value>,
    attempt: Option<Value>,
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

/// What a document says.
struct Said {
    finding: Finding,
    outcome: SaidOutcome,
    named: Named,
}

/// An answer that was read whole.
pub(super) struct Answer<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// What an answer says about what was asked.
pub(super) fn read(question: &Question, answer: &Answer<'_>, absence_is_proof: bool) -> Finding {
    judge(question, answer, absence_is_proof).unwrap_or_else(|code| {
        tracing::warn!(operation_id = %question.operation_id, code, "the answer to a poll proves nothing");
        Finding::Unclear(code.into())
    })
}

fn judge(question: &Question, answer: &Answer<'_>, absence_is_proof: bool) -> Result<Finding, Code> {
    let head = Head::read(answer.headers)?;
    head.same_operation(question)?;
    let open = |code: &str| Ok(Finding::Unclear(code.into()));
    let said_by_head = match head.outcome.map(SaidOutcome::from_name) {
        // Whoever answers may have outcomes of its own, such as `pending`: then nobody knows yet.
        Some(None) => return open("poll_outcome_open"),
        said => said.flatten(),
    };
    let document = understand(answer.body);
    let said = match (answer.status, document, said_by_head) {
        (StatusCode::OK, Ok(Some(said)), _) => Some(said),
        (StatusCode::OK, Ok(None), _) => return open("poll_outcome_open"),
        // The body of a 404 is whatever the service makes of it; of a document in it the absence alone is read.
        (StatusCode::NOT_FOUND, Ok(Some(said)), _) if said.outcome == SaidOutcome::NotExecuted => Some(said),
        (StatusCode::OK | StatusCode::NOT_FOUND, _, Some(SaidOutcome::NotExecuted)) => None,
        (StatusCode::OK, Err(error), _) => {
            tracing::warn!(%error, "the answer to a poll is not a response document");
            return open("poll_answer_not_understood");
        }
        (StatusCode::NOT_FOUND, ..) if absence_is_proof => return Err(NO_OUTCOME),
        (status, ..) => return open(&format!("poll_status_{}", status.as_u16())),
    };
    let said = said.unwrap_or_else(|| Said {
        finding: Finding::Absent,
        outcome: SaidOutcome::NotExecuted,
        named: Named::default(),
    });
    if said_by_head.is_some_and(|outcome| outcome != said.outcome) {
        return Err(CONTRADICTION);
    }
    match said.outcome {
        // True of the operation, whichever attempt it was.
        SaidOutcome::Completed => said.named.same_operation(question)?,
        SaidOutcome::NotExecuted if !absence_is_proof => return open("poll_absent"),
        SaidOutcome::Failed | SaidOutcome::NotExecuted => {
            head.names_both(&said.named, said.outcome, question)?;
        }
    }
    Ok(said.finding)
}

/// What a document says; `None`: it names an outcome that leaves it open.
fn understand(body: &[u8]) -> Result<Option<Said>, InvalidDocument> {
    let Form { is_long } = serde_json::from_slice(body)?;
    let (said, response, resource, named) = if is_long {
        let Long { outcome, operation_id, attempt, response, resource } = serde_json::from_slice(body)?;
        let Some(said) = SaidOutcome::from_name(&outcome) else { return Ok(None) };
        (Some(said), response, resource, Named { operation_id, attempt })
    } else {
        let Short { response, resource } = serde_json::from_slice(body)?;
        (None, Some(response), resource, Named::default())
    };
    let response = response.map(|given| given.stored(Unkeepable::Dropped)).transpose()?;
    let resource = resource.map(Resource::try_from).transpose()?;
    let refused = response.as_ref().is_some_and(|response| response.status >= 400);
    let outcome = said.unwrap_or(if refused { SaidOutcome::Failed } else { SaidOutcome::Completed });
    let finding = match outcome {
        SaidOutcome::Completed => Finding::Completed { response, resource },
        SaidOutcome::Failed => Finding::Failed { response, resource },
        SaidOutcome::NotExecuted => Finding::Absent,
    };
    Ok(Some(Said { finding, outcome, named }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use semel::{Body, OperationId, RecordKey, StoredResponse};

    fn question() -> Question {
        Question {
            operation_id: OperationId::from_u128(7),
            attempt: 3,
            key: RecordKey::new("acme", "pay", "key"),
            resource: None,
            recovery_point: None,
            checkpoint: None,
            number: 1,
        }
    }

    /// What an answer with these fields in its head says, where absence is proof.
    fn answered(status: u16, headers: &[(&str, &str)], body: &str) -> Finding {
        let mut fields = HeaderMap::new();
        for (name, value) in headers {
            fields.append(http::HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let answer =
            Answer { status: StatusCode::from_u16(status).unwrap(), headers: &fields, body: body.as_bytes() };
        read(&question(), &answer, true)
    }

    fn said(document: &str) -> Finding {
        answered(200, &[], document)
    }

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
                r#"{"outcome":"completed","response":{"status":201,"body":"x"},"resource":{"type":"payment","id":"pay_1"}}"#,
                Finding::Completed { response: response(201, b"x"), resource: resource() },
            ),
            (r#"{"outcome":"completed"}"#, Finding::Completed { response: None, resource: None }),
        ] {
            assert_eq!(said(answer), finding, "{answer}");
        }
        let refused = Finding::Failed { response: response(402, b"no"), resource: None };
        assert_eq!(answered(200, &[ID, ATTEMPT], r#"{"status":402,"body":"no"}"#), refused);
        let refused = Finding::Failed { response: response(200, b""), resource: None };
        let document = r#"{"outcome":"failed","operation_id":"00000000-0000-0000-0000-000000000007","attempt":3,"response":{"status":200}}"#;
        assert_eq!(said(document), refused);
    }

    #[test]
    fn an_answer_is_kept_with_its_headers_but_for_those_that_must_not_be_replayed() {
        let answer = r#"{"status":201,"headers":{"Content-Type":"text/plain","Set-Cookie":"a=b","X-Trace":"7"},"body":""}"#;
        let Finding::Completed { response: Some(response), .. } = said(answer) else { panic!("it happened") };
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
            assert!(matches!(said(answer), Finding::Unclear(_)), "{answer}");
        }
    }

    const ID: (&str, &str) = ("semel-operation-id", "00000000-0000-0000-0000-000000000007");
    const ATTEMPT: (&str, &str) = ("semel-attempt", "3");
    const NOT_EXECUTED: (&str, &str) = ("semel-outcome", "not_executed");

    #[test]
    fn an_absence_that_repeats_operation_and_attempt_is_proof() {
        let document =
            r#"{"outcome":"not_executed","operation_id":"00000000-0000-0000-0000-000000000007","attempt":3}"#;
        let page = "<html>404 Not Found</html>";
        for (status, headers, body) in [
            (404, &[ID, ATTEMPT, NOT_EXECUTED][..], ""),
            (404, &[ID, ATTEMPT, NOT_EXECUTED], page),
            (404, &[ID, ATTEMPT, NOT_EXECUTED], r#"{"status":404,"error":"Not Found"}"#),
            (200, &[ID, ATTEMPT, NOT_EXECUTED], ""),
            (200, &[], document),
            (404, &[], document),
            (200, &[NOT_EXECUTED], document),
            (200, &[ID, ATTEMPT], r#"{"outcome":"not_executed"}"#),
            (
                200,
                &[ATTEMPT],
                r#"{"outcome":"not_executed","operation_id":"00000000-0000-0000-0000-000000000007"}"#,
            ),
        ] {
            assert_eq!(answered(status, headers, body), Finding::Absent, "{status} {headers:?} {body}");
        }
        let headers = HeaderMap::new();
        let answer = Answer { status: StatusCode::OK, headers: &headers, body: document.as_bytes() };
        assert_eq!(
            read(&question(), &answer, false),
            Finding::Unclear("poll_absent".into()),
            "nobody promised"
        );
    }

    #[test]
    fn an_absence_that_may_be_about_something_else_is_no_proof() {
        let other = ("semel-operation-id", "00000000-0000-0000-0000-000000000008");
        let earlier = ("semel-attempt", "2");
        let page = "<html>404 Not Found</html>";
        for (status, headers, body, code) in [
            (404, &[][..], "", "poll_absence_without_outcome"),
            (404, &[], page, "poll_absence_without_outcome"),
            (404, &[], r#"{"status":404,"error":"Not Found"}"#, "poll_absence_without_outcome"),
            (404, &[ID, ATTEMPT], "", "poll_absence_without_outcome"),
            (404, &[ID, ATTEMPT], r#"{"outcome":"completed"}"#, "poll_absence_without_outcome"),
            (404, &[ID, ATTEMPT, ("semel-outcome", "completed")], "", "poll_absence_without_outcome"),
            (404, &[ID, ATTEMPT, ("semel-outcome", "pending")], "", "poll_outcome_open"),
            (404, &[NOT_EXECUTED], "", "poll_absence_without_operation_id"),
            (404, &[ATTEMPT, NOT_EXECUTED], "", "poll_absence_without_operation_id"),
            (404, &[ID, NOT_EXECUTED], "", "poll_absence_without_attempt"),
            (200, &[], r#"{"outcome":"not_executed"}"#, "poll_absence_without_operation_id"),
            (200, &[ID], r#"{"outcome":"not_executed","attempt":2}"#, "poll_other_attempt"),
            (200, &[ID], r#"{"outcome":"not_executed","attempt":"3"}"#, "poll_other_attempt"),
            (
                200,
                &[ID, ATTEMPT],
                r#"{"outcome":"not_executed","operation_id":"tx_7"}"#,
                "poll_other_operation",
            ),
            (404, &[other, ATTEMPT, NOT_EXECUTED], "", "poll_other_operation"),
            (404, &[ID, earlier, NOT_EXECUTED], "", "poll_other_attempt"),
            (404, &[ID, ATTEMPT, earlier, NOT_EXECUTED], "", "poll_contradiction"),
            (404, &[ID, ATTEMPT, NOT_EXECUTED, ("age", "0")], "", "poll_cached"),
            (200, &[NOT_EXECUTED, ID, ATTEMPT], r#"{"status":201}"#, "poll_contradiction"),
            (500, &[ID, ATTEMPT, NOT_EXECUTED], "", "poll_status_500"),
            (410, &[ID, ATTEMPT, NOT_EXECUTED], "", "poll_status_410"),
        ] {
            let found = answered(status, headers, body);
            assert_eq!(found, Finding::Unclear(code.into()), "{status} {headers:?} {body}");
        }
    }

    #[test]
    fn a_refusal_counts_for_the_attempt_that_it_names_alone() {
        let other = ("semel-operation-id", "00000000-0000-0000-0000-000000000008");
        let earlier = ("semel-attempt", "2");
        for (headers, body, code) in [
            (&[][..], r#"{"status":402}"#, "poll_refusal_without_operation_id"),
            (&[ID], r#"{"status":402}"#, "poll_refusal_without_attempt"),
            // Members of the short form are the service's own.
            (&[ID], r#"{"status":402,"attempt":3}"#, "poll_refusal_without_attempt"),
            (&[ID, earlier], r#"{"status":402}"#, "poll_other_attempt"),
            (&[other, ATTEMPT], r#"{"status":402}"#, "poll_other_operation"),
            (&[], r#"{"outcome":"failed"}"#, "poll_refusal_without_operation_id"),
            (&[ID], r#"{"outcome":"failed"}"#, "poll_refusal_without_attempt"),
            (&[ID], r#"{"outcome":"failed","attempt":2}"#, "poll_other_attempt"),
            (&[ID, ATTEMPT], r#"{"outcome":"failed","attempt":2}"#, "poll_other_attempt"),
            (&[ID, ATTEMPT], r#"{"outcome":"failed","operation_id":"tx_7"}"#, "poll_other_operation"),
        ] {
            let found = answered(200, headers, body);
            assert_eq!(found, Finding::Unclear(code.into()), "{headers:?} {body}");
        }
    }

    #[test]
    fn that_it_happened_counts_unless_it_is_cached_or_about_another_operation() {
        let earlier = ("semel-attempt", "2");
        for (headers, body, counts) in [
            (&[ID, ATTEMPT][..], r#"{"status":201}"#, true),
            // It happened at whichever attempt, and members of the short form are the service's own.
            (&[earlier], r#"{"status":201,"operation_id":"tx_7","attempt":1}"#, true),
            (&[], r#"{"outcome":"completed","attempt":1}"#, true),
            (&[("semel-outcome", "completed")], r#"{"status":201}"#, true),
            (&[], r#"{"outcome":"completed","operation_id":"00000000-0000-0000-0000-000000000008"}"#, false),
            (&[ID], r#"{"outcome":"completed","operation_id":"tx_7"}"#, false),
            (&[("semel-operation-id", "tx_7")], r#"{"status":201}"#, false),
            (&[ID, ATTEMPT, ("semel-outcome", "failed")], r#"{"status":201}"#, false),
            (&[("semel-outcome", "unknown")], r#"{"status":201}"#, false),
            (&[("age", "17")], r#"{"status":201}"#, false),
            (&[ID, ATTEMPT, ("age", "17")], r#"{"status":402}"#, false),
        ] {
            let unclear = matches!(answered(200, headers, body), Finding::Unclear(_));
            assert_eq!(!unclear, counts, "{headers:?} {body}");
        }
    }
}
