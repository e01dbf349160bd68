use super::*;
use crate::tenant::{REFRESHED, REVOKED};
use semel::problem::Code;
use serde_json::{Value, json};
use std::path::Path;

fn contract(toml: &str) -> Contract {
    let text = format!("upstream = \"http://127.0.0.1:9000\"\n{toml}");
    Contract::new(
        &Config::from_toml(&text, Path::new("semel.toml")).unwrap_or_else(|errors| panic!("{errors}")),
    )
}

fn document(toml: &str) -> Value {
    serde_json::from_slice(contract(toml).answer(None).body()).unwrap()
}

fn page(toml: &str) -> String {
    let html = HeaderValue::from_static("text/html");
    String::from_utf8(contract(toml).answer(Some(&html)).body().to_vec()).unwrap()
}

const PAYMENTS: &str = r#"
[[route]]
operation = "create_payment"
match = "POST /payments"
retention = "72h"
body_retention = "24h"
in_flight = "wait:5s"
[route.outcome]
503 = "retryable"
[route.fingerprint]
ignore = ["/metadata/trace_id"]
headers = ["API-Version"]
defaults = { "/currency" = "EUR", "/fee" = 0.50 }
normalise = { "/currency" = "lowercase", "/amount" = "decimal", "/at" = "timestamp" }

[[route]]
operation = "change_payment"
match = "PATCH /payments/{id}"
key = "optional"
expired = "new"
keep_headers = ["X-Cost"]
store_response = "reference"
"#;

#[test]
fn programs_read_every_operation_with_its_rules() {
    let document = document(PAYMENTS);
    assert_eq!(
        document["operations"][0],
        json!({
            "operation": "create_payment",
            "methods": ["POST"],
            "path": "/payments",
            "key": "required",
            "key_scope": "operation",
            "window_seconds": 259_200,
            "body_window_seconds": 86_400,
            "remembered_after_window_seconds": 604_800,
            "expired": "refuse",
            "in_flight": "wait",
            "in_flight_status": 409,
            "unknown_status": 409,
            "wait_seconds": 5,
            "timeout_seconds": 25,
            "stored_response": "full",
            "max_request_body_bytes": 1_048_576,
            "max_stored_response_bytes": 1_048_576,
            "fingerprint": { "ignored": ["/metadata/trace_id"], "counted": [], "headers": ["api-version"], "host": true, "defaults": { "/currency": "EUR", "/fee": 0.50 }, "normalised": { "/currency": "lowercase", "/amount": "decimal", "/at": "timestamp" }, "bytes": false },
            "outcomes": { "503": "retryable" },
        })
    );
    let second = &document["operations"][1];
    assert_eq!((&second["key"], &second["expired"]), (&json!("optional"), &json!("new")));
    assert_eq!((&second["stored_response"], &second["in_flight"]), (&json!("reference"), &json!("conflict")));
    assert_eq!(second["kept_headers"], json!(["x-cost"]));
    assert!(second.get("wait_seconds").is_none() && second.get("outcomes").is_none());
}

#[test]
fn where_the_key_is_looked_for_is_published() {
    let routes = "[key]\nfrom = [\"header:X-Key\", \"json:/key\"]\n[[route]]\nmatch = \"POST /a\"\n\
                  [[route]]\nmatch = \"POST /b\"\n[route.key]\nfrom = [\"json:/b/key\"]\nmin_length = 1\n";
    let published = document(routes);
    assert_eq!(published["key"]["sources"], json!(["header:x-key", "json:/key"]));
    assert_eq!(published["key"]["header"], json!("X-Key"));
    assert!(published["operations"][0].get("key_sources").is_none());
    assert_eq!(published["operations"][1]["key_sources"], json!(["json:/b/key"]));
    assert_eq!(published["operations"][1]["key_length"], json!({ "min": 1, "max": 255 }));
    let page = page(routes);
    assert!(
        page.contains("<code>x-key</code>, or as the string at <code>/key</code> in the JSON body"),
        "{page}"
    );
    assert!(page.contains("the key is sent as the string at <code>/b/key</code>"), "{page}");
    assert_eq!(document("")["key"]["sources"], json!(["header:idempotency-key"]));
    assert_eq!(document("")["key"]["header"], json!("Idempotency-Key"));
}

#[test]
fn a_catch_all_without_a_name_is_published_with_the_rule_of_precedence() {
    let routes = "[[route]]\nmatch = \"DELETE /**\"\n[[route]]\noperation = \"a\"\nmatch = \"PUT /a/{id}\"\n";
    let operations = &document(routes)["operations"];
    assert_eq!((&operations[0]["operation"], &operations[0]["methods"]), (&json!(null), &json!(["DELETE"])));
    assert_eq!((&operations[0]["path"], &operations[1]["path"]), (&json!("/**"), &json!("/a/{id}")));
    let page = page(routes);
    assert!(page.contains("each path its own") && page.contains("<code>DELETE /**</code>"), "{page}");
    assert!(
        page.contains("a literal beats <code>{name}</code>, and <code>{name}</code> beats <code>**</code>")
    );
}

#[test]
fn the_statuses_of_duplicates_are_those_of_the_profile() {
    let routes = "profile = \"iceberg\"\n[[route]]\noperation = \"commit\"\nmatch = \"POST /tables\"\nin_flight = \"wait:5s\"\n";
    let operation = &document(routes)["operations"][0];
    assert_eq!((&operation["in_flight_status"], &operation["unknown_status"]), (&json!(504), &json!(504)));
    let page = page(routes);
    assert!(page.contains("waits up to 5 seconds, then 504") && !page.contains("409"), "{page}");
}

#[test]
fn accepted_is_said_of_doubt_too() {
    let toml = "[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\nin_flight = \"accepted\"\n";
    let operation = &document(toml)["operations"][0];
    assert_eq!((&operation["in_flight_status"], &operation["unknown_status"]), (&json!(202), &json!(202)));
    assert!(page(toml).contains("202 with Retry-After, also while the outcome is unknown"));
}

#[test]
fn the_statuses_are_those_of_the_profile_in_force() {
    let statuses = |toml: &str| -> Vec<(String, u64)> {
        let document = document(toml);
        let errors = document["errors"].as_array().unwrap();
        errors
            .iter()
            .map(|error| (error["code"].as_str().unwrap().into(), error["status"].as_u64().unwrap()))
            .collect()
    };
    let (ietf, stripe) = (statuses(""), statuses("profile = \"stripe\""));
    assert_eq!(ietf.len(), Code::ALL.len());
    let changed: Vec<_> = ietf.iter().zip(&stripe).filter(|(one, other)| one != other).collect();
    let names: Vec<_> = changed.iter().map(|((code, _), _)| code.as_str()).collect();
    assert_eq!(names, ["idempotency_key_reused_with_different_payload", "idempotency_key_expired"]);
    assert!(changed.iter().all(|((_, ietf), (_, stripe))| (*ietf, *stripe) == (422, 400)));
    let document = document("");
    let unknown =
        document["errors"].as_array().unwrap().iter().find(|error| error["first_status"].is_u64()).unwrap();
    assert_eq!(
        *unknown,
        json!({
            "code": "idempotency_outcome_unknown",
            "type": "/.well-known/idempotency#idempotency_outcome_unknown",
            "title": "Outcome unknown",
            "status": 409,
            "first_status": 504,
            "retryable": true,
            "retry_after": true,
        })
    );
}

#[test]
fn the_key_that_is_shown_is_one_that_would_be_taken() {
    for (toml, example) in [
        ("", "0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11"),
        ("[key]\nsyntax = \"structured\"", "\"0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b11\""),
        ("[key]\nmax_length = 20", "0a4f6c1e-8f5e-4c3a-9"),
        ("[key]\nmin_length = 40", "0a4f6c1e-8f5e-4c3a-9d57-7f0a9a6f2b110a4f"),
    ] {
        let text = format!("upstream = \"http://127.0.0.1:9000\"\n{toml}");
        let config = Config::from_toml(&text, Path::new("semel.toml")).unwrap();
        let value = HeaderValue::from_static(example);
        assert!(config.key_rules.parse([&value].into_iter()).unwrap().is_some());
        assert_eq!(document(toml)["key"]["example"], example);
    }
}

#[test]
fn whose_key_it_is_is_said_and_what_a_refreshed_token_does() {
    for (toml, refreshed, sources) in [
        ("", true, json!(["credential"])),
        ("[scope]\ntenant = [\"credential\"]", true, json!(["credential"])),
        ("[scope]\ntenant = [\"header:x-account-id\"]", false, json!(["header"])),
        (
            "[scope]\ntenant = [\"header:x-account-id\", \"credential\"]",
            true,
            json!(["header", "credential"]),
        ),
        (
            "[scope]\ntenant = [\"jwt:sub\", \"forward-auth\"]\n[scope.jwt]\nsecret = \"a-secret-of-at-least-thirty-two-bytes\"\n\
             audience = [\"shop\"]\n[scope.forward_auth]\nurl = \"http://127.0.0.1:9200/auth\"\ntenant_header = \"x-account-id\"",
            false,
            json!(["jwt", "forward-auth"]),
        ),
    ] {
        let (page, document) = (page(toml), document(toml));
        assert_eq!(page.contains(REFRESHED), refreshed, "{toml}");
        assert_eq!(document["tenant"]["rules"].to_string().contains(REFRESHED), refreshed, "{toml}");
        let revoked = refreshed || toml.contains("jwt:");
        assert_eq!(page.contains(REVOKED), revoked, "{toml}");
        assert_eq!(document["tenant"]["rules"].to_string().contains(REVOKED), revoked, "{toml}");
        assert_eq!(document["tenant"]["sources"], sources);
        for inside in ["x-account-id", "9200", "a-secret"] {
            assert!(!page.contains(inside) && !document.to_string().contains(inside), "{inside}");
        }
        assert_eq!(page.contains("share one tenant"), toml.is_empty());
    }
    let asked = "[scope]\nreplay_check = \"http://127.0.0.1:9200/auth\"";
    let rules = document(asked)["tenant"]["rules"].to_string();
    assert!(rules.contains("Before every replay") && !rules.contains(REVOKED) && !rules.contains("9200"));
}

#[test]
fn the_page_has_a_place_for_every_code_and_loads_nothing() {
    let page = page(PAYMENTS);
    for code in Code::ALL {
        assert_eq!(page.matches(&format!("id=\"{code}\"")).count(), 1, "{code}");
    }
    for outside in ["src=", "http://", "https://", "url(", "@import", "<script", "<link", "{{"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for said in [
        "<code>create_payment</code>",
        "<code>PATCH /payments/{id}</code>",
        "<td>3 days</td>",
        "waits up to 5 seconds, then 409",
        "their bodies for 24 hours",
        "<code>/metadata/trace_id</code> does not count",
        "<code>/currency</code> counts as <code>&quot;EUR&quot;</code> where it is absent",
        "<code>/fee</code> counts as <code>0.50</code> where it is absent",
        "the text <code>/currency</code> is compared without regard to case (A to Z)",
        "the text <code>/amount</code> is compared by its value as a decimal",
        "the text <code>/at</code> is compared by its instant",
        "503 means retryable",
        "<code>x-cost</code> is kept too",
        "prefers-color-scheme: dark",
        "lang=\"en\"",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert_eq!(page.matches('<').count(), page.matches('>').count());
}

#[test]
fn what_comes_from_the_configuration_is_escaped() {
    let page = page(
        "[[route]]\noperation = \"a\"\nmatch = \"POST /a&b'c\"\n[route.fingerprint]\nignore = [\"/<script>\"]\n",
    );
    assert!(page.contains("POST /a&amp;b&#39;c") && page.contains("/&lt;script&gt;"));
    assert!(!page.contains("<script>"));
}

#[test]
fn without_routes_everything_with_a_key_is_the_contract() {
    let document = document("");
    let operation = &document["operations"][0];
    assert_eq!((&operation["operation"], &operation["path"]), (&Value::Null, &Value::Null));
    assert_eq!((&operation["methods"], &operation["key"]), (&json!(["POST", "PATCH"]), &json!("optional")));
    assert!(page("").contains("Every POST and PATCH that brings a key is protected"));
}

#[test]
fn the_answer_suits_the_client_and_says_so_to_caches() {
    let contract = contract("");
    let mut browser = HeaderMap::new();
    browser.append(ACCEPT, HeaderValue::from_static("text/html,*/*;q=0.8"));
    let cases = [(HeaderMap::new(), "application/json"), (browser, "text/html; charset=utf-8")];
    for (headers, kind) in cases {
        let get = contract.respond(&Method::GET, &headers);
        assert_eq!(
            (get.status(), &get.headers()[CONTENT_TYPE]),
            (StatusCode::OK, &HeaderValue::from_static(kind))
        );
        assert_eq!(get.headers()[VARY], "Accept");
        assert_eq!(get.headers()[CACHE_CONTROL], "public, max-age=60");
        assert_eq!(get.headers()[CONTENT_LENGTH], get.body().len().to_string());
        let head = contract.respond(&Method::HEAD, &headers);
        assert_eq!((head.headers(), head.body().len()), (get.headers(), 0));
    }
    let post = contract.respond(&Method::POST, &HeaderMap::new());
    assert_eq!(
        (post.status(), &post.headers()[ALLOW]),
        (StatusCode::METHOD_NOT_ALLOWED, &HeaderValue::from_static("GET, HEAD"))
    );
}

#[test]
fn what_is_published_of_statuses_is_what_counts() {
    use semel_tower::{OutcomeClass, OutcomeRules};
    let document = document(PAYMENTS);
    let published = document["outcomes"].as_object().unwrap();
    let class_of = |status: u16| {
        let said = |listed: &String| listed.split(", ").any(|listed| listed == status.to_string());
        let kinds = [format!("{}xx", status / 100), format!("other {}xx", status / 100)];
        let falls =
            |listed: &String| listed.split(", ").any(|listed| kinds.iter().any(|kind| kind == listed));
        let found = published.iter().find(|(listed, _)| said(listed));
        found.or_else(|| published.iter().find(|(listed, _)| falls(listed))).unwrap().1.as_str().unwrap()
    };
    for status in 200..600 {
        let class = OutcomeRules::default().class_of(http::StatusCode::from_u16(status).unwrap());
        assert_eq!(class_of(status).parse::<OutcomeClass>(), Ok(class), "{status}");
    }
}

#[test]
fn whether_the_host_counts_is_said() {
    let ignored = "[fingerprint]\nhost = \"ignore\"\n";
    assert_eq!(document("")["operations"][0]["fingerprint"]["host"], true);
    assert_eq!(document(ignored)["operations"][0]["fingerprint"]["host"], false);
    assert!(page(ignored).contains("the host that it is sent to does not count"));
    assert!(!page("").contains("does not count"));
}

#[test]
fn whether_bytes_are_compared_is_said() {
    let bytes = "[[route]]\noperation = \"a\"\nmatch = \"POST /a\"\n[route.fingerprint]\nbytes = true\n";
    assert_eq!(document(bytes)["operations"][0]["fingerprint"]["bytes"], true);
    assert_eq!(document("profile = \"ucp\"\n")["operations"][0]["fingerprint"]["bytes"], true);
    assert!(page(bytes).contains("compared byte by byte, whatever its type"));
    assert!(!page("").contains("whatever its type"));
}
