use super::*;
use http::header::RETRY_AFTER;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::{fs, path::PathBuf};

fn problem(code: Code, profile: Profile) -> Problem {
    Problem::new(code, profile, "What to do.")
}

fn retry_after(problem: Problem) -> Option<String> {
    let response = problem.into_response(&DocsBase::default());
    response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap().to_owned())
}

#[test]
fn every_code_has_its_status_in_both_profiles() {
    // Code, IETF, Stripe, whether it comes with Retry-After, whether it is retryable.
    let table = [
        ("idempotency_key_missing", 400, 400, false, false),
        ("idempotency_key_invalid", 400, 400, false, false),
        ("idempotency_key_reused_with_different_payload", 422, 400, false, false),
        ("idempotency_key_in_progress", 409, 409, true, true),
        ("idempotency_outcome_unknown", 409, 409, true, true),
        ("idempotency_key_expired", 422, 400, false, false),
        ("idempotency_response_not_stored", 409, 409, false, false),
        ("idempotency_scope_unresolved", 401, 401, false, false),
        ("idempotency_store_unavailable", 503, 503, true, true),
        ("idempotency_upstream_unreachable", 502, 502, false, true),
        ("idempotency_request_too_large", 413, 413, false, false),
        ("idempotency_record_damaged", 500, 500, false, false),
        ("idempotency_quota_exceeded", 429, 429, true, true),
    ];
    assert_eq!(Code::ALL.map(Code::as_str), table.map(|row| row.0));
    for (code, (name, ietf, stripe, comes_back, retryable)) in Code::ALL.into_iter().zip(table) {
        assert_eq!(problem(code, Profile::Ietf).status, ietf, "{name}, IETF");
        assert_eq!(problem(code, Profile::Stripe).status, stripe, "{name}, Stripe");
        assert_eq!(code.retryable(), retryable, "{name}, retryable");
        for profile in [Profile::Ietf, Profile::Stripe] {
            assert_eq!(retry_after(problem(code, profile)).is_some(), comes_back, "{name}, Retry-After");
        }
    }
}

#[test]
fn the_ietf_profile_is_the_default() {
    assert_eq!(Profile::default(), Profile::Ietf);
}

#[test]
fn only_the_request_that_ended_in_doubt_gets_504() {
    for profile in [Profile::Ietf, Profile::Stripe] {
        for code in Code::ALL {
            let later = problem(code, profile);
            let first = later.clone().for_first_request();
            if code == Code::OutcomeUnknown {
                assert_eq!((first.status.as_u16(), later.status.as_u16()), (504, 409));
            } else {
                assert_eq!(first, later);
            }
        }
    }
}

#[test]
fn a_plain_document_has_the_members_that_every_problem_has() {
    let document = problem(Code::KeyMissing, Profile::Ietf).into_response(&DocsBase::default()).into_body();
    assert_eq!(
        document,
        concat!(
            r#"{"type":"/.well-known/idempotency#idempotency_key_missing","title":"Idempotency key missing","#,
            r#""status":400,"detail":"What to do.","code":"idempotency_key_missing","retryable":false,"safe_new_key":true}"#
        )
    );
}

#[test]
fn a_full_document_says_all_that_is_known() {
    let document = problem(Code::OutcomeUnknown, Profile::Ietf)
        .for_first_request()
        .with_operation_id(OperationId::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001))
        .with_upstream_status(502)
        .with_resource(Resource { kind: "payment".to_owned(), id: "pay_\"1\"".to_owned() })
        .with_retryable(false)
        .into_response(&DocsBase::new("https://docs.example.com/errors/").unwrap())
        .into_body();
    assert_eq!(
        serde_json::from_slice::<Value>(&document).unwrap(),
        json!({
            "type": "https://docs.example.com/errors/idempotency_outcome_unknown",
            "title": "Outcome unknown",
            "status": 504,
            "detail": "What to do.",
            "code": "idempotency_outcome_unknown",
            "retryable": false,
            "safe_new_key": false,
            "operation_state": "unknown",
            "operation_id": "01900000-0000-7000-8000-000000000001",
            "upstream_status": 502,
            "resource": {"type": "payment", "id": "pay_\"1\""},
        })
    );
}

#[test]
fn the_response_is_labelled_linked_and_never_cached() {
    let response = problem(Code::KeyExpired, Profile::Ietf).into_response(&DocsBase::default());
    assert_eq!(response.status(), 422);
    let headers: Vec<_> =
        response.headers().iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(
        headers,
        vec![
            ("content-type", "application/problem+json"),
            ("cache-control", "no-store"),
            ("link", r#"</.well-known/idempotency#idempotency_key_expired>; rel="describedby""#),
        ]
    );
    assert_eq!(serde_json::from_slice::<Value>(response.body()).unwrap()["status"], 422);
}

#[test]
fn retry_after_is_whole_seconds_rounded_up_and_at_least_one() {
    let cases = [(0, "1"), (1, "1"), (999, "1"), (1_000, "1"), (1_001, "2"), (30_000, "30")];
    for (milliseconds, expected) in cases {
        let wait = Duration::from_millis(milliseconds);
        let problem = problem(Code::InProgress, Profile::Ietf).with_retry_after(wait);
        assert_eq!(retry_after(problem).as_deref(), Some(expected), "{milliseconds} ms");
    }
    let for_ever = problem(Code::InProgress, Profile::Ietf).with_retry_after(Duration::MAX);
    assert_eq!(retry_after(for_ever), Some(u64::MAX.to_string()));
}

#[test]
fn a_docs_base_that_would_break_the_link_is_refused() {
    for bad in ["https://example.com/a b", "/errors>; rel=\"next\"", "/errors\r\nset-cookie: a=b", "/fehlér#"]
    {
        let refusal = DocsBase::new(bad).unwrap_err();
        assert!(refusal.to_string().contains("percent-encode"), "{refusal}");
    }
    assert_eq!(DocsBase::new("/e?code=").unwrap().page(Code::KeyMissing), "/e?code=idempotency_key_missing");
}

fn pages() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors"))
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    let pages: BTreeSet<String> = fs::read_dir(pages())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    let codes: BTreeSet<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
    assert_eq!(pages, codes);
}

#[test]
fn every_page_says_what_happened_whether_to_retry_and_what_to_do() {
    let index = fs::read_to_string(pages().join("README.md")).unwrap();
    for code in Code::ALL {
        let page = fs::read_to_string(pages().join(format!("{code}.md"))).unwrap();
        assert!(page.starts_with(&format!("# `{code}`\n")), "{code}: the heading names the code");
        for section in ["What happened", "Is it safe to retry?", "What to do", "Example"] {
            assert!(page.contains(&format!("\n## {section}\n")), "{code}: section “{section}”");
        }
        let statuses = [Profile::Ietf, Profile::Stripe].map(|profile| code.status(profile).as_u16());
        for status in statuses {
            assert!(page.contains(&status.to_string()), "{code}: status {status}");
        }
        assert!(index.contains(&format!("]({code}.md)")), "{code}: in the index");
    }
}

#[test]
fn every_example_is_a_response_that_this_module_makes() {
    for code in Code::ALL {
        let page = fs::read_to_string(pages().join(format!("{code}.md"))).unwrap();
        let (_, example) = page.split_once("```http\n").unwrap();
        let (example, _) = example.split_once("\n```").unwrap();
        let (head, body) = example.split_once("\n\n").unwrap();
        let shown: Value = serde_json::from_str(body).unwrap();
        let text = |member: &str| shown[member].as_str().map(ToOwned::to_owned);

        let mut problem = Problem::new(code, Profile::Ietf, text("detail").unwrap());
        problem.operation_state = text("operation_state").map(|state| State::from_name(&state).unwrap());
        problem.safe_new_key = shown["safe_new_key"] == true;
        problem.operation_id = text("operation_id").map(|id| id.parse().unwrap());
        problem.upstream_status = shown["upstream_status"].as_u64().map(|status| status.try_into().unwrap());
        if problem.upstream_status.is_some() {
            problem = problem.for_first_request();
        }
        problem.resource = shown["resource"].as_object().map(|resource| {
            let member = |name| resource[name].as_str().unwrap().to_owned();
            Resource { kind: member("type"), id: member("id") }
        });
        let made = problem.into_response(&DocsBase::default());

        assert_eq!(shown, serde_json::from_slice::<Value>(made.body()).unwrap(), "{code}");
        let mut lines = vec![format!("HTTP/1.1 {}", made.status())];
        lines.extend(
            made.headers().iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())),
        );
        assert_eq!(head.lines().collect::<Vec<_>>(), lines, "{code}");
    }
}
