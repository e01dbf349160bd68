use super::*;
use crate::{OperationId, Resource, State, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;

fn body(format: &Format, problem: &Problem) -> Value {
    serde_json::from_slice(format.problem(problem, &DocsBase::default()).body()).unwrap()
}

fn problem(code: Code, profile: Profile) -> Problem {
    Problem::new(code, profile, "What to do.")
}

#[test]
fn every_refusal_to_stripes_libraries_has_an_error_with_a_type() {
    let format = Format::of(Profile::Stripe);
    for code in Code::ALL {
        let response = format.problem(&problem(code, Profile::Stripe), &DocsBase::default());
        let document: Value = serde_json::from_slice(response.body()).unwrap();
        let error = &document["error"];
        assert!(error["type"].is_string() && error["code"].is_string(), "{code}: {document}");
        assert_eq!(error["message"], "What to do.");
        assert!(error["doc_url"].as_str().unwrap().ends_with(code.as_str()));
        let headers = response.headers();
        assert_eq!(headers["stripe-should-retry"], if code.retryable() { "true" } else { "false" }, "{code}");
        assert!(headers["request-id"].to_str().unwrap().starts_with("req_"));
    }
    let kind = |code| body(&format, &problem(code, Profile::Stripe))["error"]["type"].clone();
    assert_eq!(kind(Code::KeyReused), "idempotency_error");
    assert_eq!(kind(Code::OutcomeUnknown), "api_error");
    let in_use = body(&format, &problem(Code::InProgress, Profile::Stripe));
    assert_eq!(in_use["error"]["code"], "idempotency_key_in_use");
    let busy = PlainProblem { status: StatusCode::SERVICE_UNAVAILABLE, retryable: true, detail: "Busy." };
    let busy: Value = serde_json::from_slice(format.plain(&busy).body()).unwrap();
    assert_eq!(
        busy,
        json!({"error": {"type": "api_error", "code": "service_unavailable", "message": "Busy."}})
    );
}

#[test]
fn acp_ucp_and_adcp_have_the_bodies_of_their_specifications() {
    let of = |code, profile| body(&Format::of(profile), &problem(code, profile));
    assert_eq!(
        of(Code::KeyReused, Profile::Acp),
        json!({"type": "invalid_request", "code": "idempotency_conflict", "message": "What to do."})
    );
    assert_eq!(of(Code::KeyMissing, Profile::Acp)["code"], "idempotency_key_required");
    assert_eq!(of(Code::InProgress, Profile::Acp)["code"], "idempotency_in_flight");
    assert_eq!(of(Code::OutcomeUnknown, Profile::Acp)["type"], "processing_error");
    assert_eq!(
        of(Code::KeyReused, Profile::Ucp),
        json!({"code": "idempotency_conflict", "content": "What to do."})
    );
    assert_eq!(
        of(Code::InProgress, Profile::Adcp),
        json!({"errors": [{
            "code": "IDEMPOTENCY_IN_FLIGHT", "message": "What to do.", "recovery": "transient", "retry_after": 1,
        }]})
    );
    let conflict = of(Code::KeyReused, Profile::Adcp);
    assert_eq!(conflict["errors"][0]["code"], "IDEMPOTENCY_CONFLICT");
    assert_eq!(conflict["errors"][0]["recovery"], "correctable");
    assert_eq!(of(Code::KeyExpired, Profile::Adcp)["errors"][0]["code"], "IDEMPOTENCY_EXPIRED");
    assert_eq!(of(Code::KeyMissing, Profile::Adcp)["errors"][0]["code"], "INVALID_REQUEST");
}

#[test]
fn icebergs_clients_never_get_what_makes_them_delete_files() {
    let format = Format::of(Profile::Iceberg);
    for code in Code::ALL {
        for mut problem in
            [problem(code, Profile::Iceberg), problem(code, Profile::Iceberg).for_first_request()]
        {
            for status in [problem.status, StatusCode::ACCEPTED, StatusCode::SERVICE_UNAVAILABLE] {
                problem.status = status;
                let response = format.problem(&problem, &DocsBase::default());
                assert!(
                    ![202, 409, 503].contains(&response.status().as_u16()),
                    "{code}: {}",
                    response.status()
                );
                let document: Value = serde_json::from_slice(response.body()).unwrap();
                assert_eq!(document["error"]["code"], response.status().as_u16(), "{code}");
            }
        }
    }
    let doubt = body(&format, &problem(Code::OutcomeUnknown, Profile::Iceberg));
    assert_eq!(doubt["error"]["type"], "CommitStateUnknownException");
    assert_eq!(doubt["error"]["code"], 504);
    let busy = PlainProblem { status: StatusCode::SERVICE_UNAVAILABLE, retryable: true, detail: "Busy." };
    assert_eq!(format.plain(&busy).status(), 504);
}

#[test]
fn a_template_fills_in_what_is_known_and_escapes_it() {
    let text = r#"{"error": {"code": "{code}", "message": "say \"{detail}\"", "status": "{status:number}",
        "again": "{retryable:boolean}", "id": "{operation_id}", "made": "{resource_type}/{resource_id}", "{{x}}": 1}}"#;
    let format = Format::named(Profile::Ietf, "mybank")
        .with_status(Code::KeyReused, StatusCode::CONFLICT)
        .with_body(Template::parse(text).unwrap());
    let mut reused = problem(Code::KeyReused, Profile::Ietf);
    reused.detail = "a \"quote\", a \\ and \u{1}".to_owned();
    reused.resource = Some(Resource { kind: "a\"b".to_owned(), id: "{detail}".to_owned() });
    let response = format.problem(&reused, &DocsBase::default());
    assert_eq!(response.status(), 409);
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(
        serde_json::from_slice::<Value>(response.body()).unwrap(),
        json!({"error": {
            "code": "idempotency_key_reused_with_different_payload",
            "message": "say \"a \"quote\", a \\ and \u{1}\"",
            "status": 409, "again": false, "id": null, "made": "a\"b/{detail}", "{x}": 1,
        }})
    );
    let known = reused.with_operation_id(OperationId::from_u128(7));
    assert_eq!(body(&format, &known)["error"]["id"], "00000000-0000-0000-0000-000000000007");
}

#[test]
fn a_text_that_is_not_a_template_is_refused_at_its_place() {
    for (text, at, problem, cure) in [
        (r#"{"code": {code}}"#, 10, "is not JSON", "inside strings"),
        (r#"{"code": "{cod}"}"#, 10, "{cod} is not a placeholder", "code"),
        (r#"{"code": "a {key}"}"#, 12, "the key is not", "take it out"),
        (r#"{"code": "{code:number}"}"#, 10, "cannot be written as a number", "{code}"),
        (r#"{"code": "is {status:number}"}"#, 13, "the whole string", "{status}"),
        (r#"{"code": "{status:boolean}"}"#, 10, "as a boolean", "{status:number}"),
        (r#"{"{code}": 1}"#, 2, "name of a member", "into the value"),
        (r#"{"code": "a { b"}"#, 12, "unmatched brace", "{{"),
        ("", 0, "is not JSON", "JSON"),
    ] {
        let error = Template::parse(text).unwrap_err();
        assert_eq!(error.at, at, "{text}: {error}");
        assert!(error.problem.contains(problem) && error.cure.contains(cure), "{text}: {error}");
    }
}

#[test]
fn a_problem_document_says_how_the_operation_stands() {
    let mut expired = problem(Code::ResponseNotStored, Profile::Ietf)
        .with_state(State::Completed)
        .with_expiry(Some(Timestamp::from_millis(1_700_000_000_000)));
    expired.retry_after = Some(Duration::from_secs(3));
    let document = body(&Format::default(), &expired);
    assert_eq!(document["operation_state"], "completed");
    assert_eq!(document["expires_at"], "2023-11-14T22:13:20Z");
    assert_eq!(document["safe_new_key"], false);
    let missing = body(&Format::default(), &problem(Code::KeyMissing, Profile::Ietf));
    assert_eq!(missing["safe_new_key"], true);
    assert_eq!(missing.get("operation_state"), None);
}
