//! The status of every code that can be reached, by profile, and what clients are told of the first request.

use crate::support::{Answer, Ask, Call, Fault, Shop};
use semel::problem::{DocsBase, Profile};
use semel::{Policy, StoreResponse};
use semel_tower::Protection;
use std::sync::Arc;
use std::time::Duration;

async fn shop(profile: Profile) -> Shop {
    let policy = Arc::new(Policy { store_response: StoreResponse::Reference, ..Policy::default() });
    let protection = Protection {
        policy,
        max_request_body: 100,
        timeout: Duration::from_secs(9),
        ..Protection::default()
    };
    Shop::layered(|layer| {
        let tenant = |parts: &http::request::Parts| parts.headers.get("x-account").map(|_| "ann".to_owned());
        layer.profile(profile).tenant(tenant).protect_writes(protection).unwrap()
    })
    .await
}

/// The status and code of every problem, in the order of the contract.
async fn problems(profile: Profile) -> Vec<(u16, String)> {
    let shop = shop(profile).await;
    // Of a form that every profile takes.
    let [key, other] = ["019a6c1e-8f5e-7c3a-9d57-7f0a9a6f2b11", "019a6c1e-8f5e-7c3a-9d57-7f0a9a6f2b12"];
    let ask = Ask::payment().key(key).header("x-account", "1");
    // In every format, the link names the code.
    let told = |answer: Answer| {
        let link = answer.header("link").unwrap();
        let code = link.split_once('#').and_then(|(_, rest)| rest.split_once('>')).unwrap().0;
        (answer.status, code.to_owned())
    };
    let mut problems = vec![
        told(shop.send(&ask.clone().without("idempotency-key")).await),
        told(shop.send(&ask.clone().key("a key with spaces")).await),
        told(shop.send(&Ask::payment().key(key)).await),
        told(shop.send(&ask.clone().body("x".repeat(101))).await),
    ];
    shop.store.next(Call::Create, [Fault::Unavailable]);
    let unavailable = shop.send(&ask).await;
    assert!(unavailable.header("retry-after").is_some());
    problems.push(told(unavailable));

    let line = ask.clone().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    let in_progress = shop.send(&ask).await;
    assert!(in_progress.header("retry-after").is_some());
    problems.push(told(in_progress));
    shop.till.gate.open();
    assert_eq!(Answer::read(line).await.status, 201);
    problems.push(told(shop.send(&ask.clone().json("{}")).await));
    problems.push(told(shop.send(&ask).await));
    shop.clock.advance(Policy::default().retention);
    problems.push(told(shop.send(&ask).await));

    let doubtful = ask.key(other).status(502);
    problems.push(told(shop.send(&doubtful).await));
    let unknown = shop.send(&doubtful).await;
    assert!(unknown.header("retry-after").is_some());
    problems.push(told(unknown));

    shop.connection().execute("UPDATE semel_records SET state = 'no such state'", []).unwrap();
    problems.push(told(shop.send(&doubtful).await));
    problems
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ietf_profile_has_the_statuses_of_the_draft() {
    let expected = [
        (400, "idempotency_key_missing"),
        (400, "idempotency_key_invalid"),
        (401, "idempotency_scope_unresolved"),
        (413, "idempotency_request_too_large"),
        (503, "idempotency_store_unavailable"),
        (409, "idempotency_key_in_progress"),
        (422, "idempotency_key_reused_with_different_payload"),
        (409, "idempotency_response_not_stored"),
        (422, "idempotency_key_expired"),
        (504, "idempotency_outcome_unknown"),
        (409, "idempotency_outcome_unknown"),
        (500, "idempotency_record_damaged"),
    ];
    assert_eq!(problems(Profile::Ietf).await, expected.map(|(status, code)| (status, code.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stripe_profile_has_the_statuses_that_stripes_clients_know() {
    let expected = [
        (400, "idempotency_key_missing"),
        (400, "idempotency_key_invalid"),
        (401, "idempotency_scope_unresolved"),
        (413, "idempotency_request_too_large"),
        (503, "idempotency_store_unavailable"),
        (409, "idempotency_key_in_progress"),
        (400, "idempotency_key_reused_with_different_payload"),
        (409, "idempotency_response_not_stored"),
        (400, "idempotency_key_expired"),
        (504, "idempotency_outcome_unknown"),
        (409, "idempotency_outcome_unknown"),
        (500, "idempotency_record_damaged"),
    ];
    assert_eq!(problems(Profile::Stripe).await, expected.map(|(status, code)| (status, code.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn icebergs_clients_get_504_wherever_a_commit_may_have_happened() {
    let expected = [
        (400, "idempotency_key_missing"),
        (400, "idempotency_key_invalid"),
        (401, "idempotency_scope_unresolved"),
        (413, "idempotency_request_too_large"),
        (504, "idempotency_store_unavailable"),
        (504, "idempotency_key_in_progress"),
        (422, "idempotency_key_reused_with_different_payload"),
        (504, "idempotency_response_not_stored"),
        (504, "idempotency_key_expired"),
        (504, "idempotency_outcome_unknown"),
        (504, "idempotency_outcome_unknown"),
        (500, "idempotency_record_damaged"),
    ];
    assert_eq!(problems(Profile::Iceberg).await, expected.map(|(status, code)| (status, code.to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_say_how_long_the_key_is_remembered_and_replays_which_request_was_first() {
    let shop = Shop::layered(|layer| layer).await;
    let ask = Ask::payment().header("x-request-id", "the-first-one");
    let (first, retry) = (shop.send(&ask).await, shop.send(&ask.header("x-request-id", "the-second")).await);
    let until = first.header("idempotency-key-expires").unwrap();
    assert!(until.starts_with('@') && until[1..].parse::<u64>().is_ok(), "{until}");
    assert_eq!(retry.header("idempotency-key-expires"), Some(until));
    assert_eq!(first.header("original-request-id"), None);
    assert_eq!(retry.header("original-request-id"), Some("the-first-one"));
    let unnamed = Ask::payment().key("key-of-a-request-without-an-id");
    let (first, retry) = (shop.send(&unnamed).await, shop.send(&unnamed).await);
    assert_eq!(retry.header("original-request-id"), first.header("semel-operation-id"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_about_a_known_key_say_how_long_it_is_remembered_and_which_request_was_first() {
    let kept = Protection { max_stored_response: 4, ..Protection::default() };
    let shop = Shop::protected(kept).await;
    let ask = Ask::payment().header("x-request-id", "the-first-one");
    let first = shop.send(&ask).await;
    let until = first.header("idempotency-key-expires");
    assert!(until.is_some());
    let gone = shop.send(&Ask::payment()).await;
    assert_eq!(gone.code(), "idempotency_response_not_stored");
    assert_eq!(gone.header("original-request-id"), Some("the-first-one"));
    let reused = shop.send(&Ask::payment().json("{}")).await;
    assert_eq!(reused.code(), "idempotency_key_reused_with_different_payload");
    assert_eq!(
        [gone.header("idempotency-key-expires"), reused.header("idempotency-key-expires")],
        [until; 2]
    );
    let missing = shop.send(&Ask::payment().without("idempotency-key")).await;
    assert_eq!(missing.header("idempotency-key-expires"), None, "no key, no window");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_cannot_say_how_long_a_key_is_remembered_or_which_request_was_first() {
    let shop = Shop::open().await;
    let ask = Ask::payment()
        .answered_with("idempotency-key-expires", "@1")
        .answered_with("original-request-id", "made-up");
    let (first, replay) = (shop.send(&ask).await, shop.send(&ask).await);
    assert_eq!((first.header("original-request-id"), first.all("idempotency-key-expires").len()), (None, 1));
    assert_ne!(first.header("idempotency-key-expires"), Some("@1"));
    assert_eq!(replay.all("original-request-id"), first.all("semel-operation-id"));
    assert_eq!(replay.all("idempotency-key-expires"), first.all("idempotency-key-expires"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_document_links_to_a_page_that_answers() {
    let shop = Shop::layered(|layer| layer).await;
    let refused = shop.send(&Ask::payment().without("idempotency-key")).await;
    let (page, code) = refused.json()["type"]
        .as_str()
        .unwrap()
        .split_once('#')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert!(refused.header("link").unwrap().starts_with(&format!("<{page}#{code}>")));
    let asked = shop.send(&Ask::new("GET", &page)).await;
    assert_eq!((asked.status, asked.header("content-type")), (200, Some("application/json")));
    let document = asked.json();
    let errors = document["errors"].as_array().unwrap();
    assert!(
        errors.iter().any(|error| error["code"] == code.as_str() && error["status"] == 400),
        "{document}"
    );
    let html = shop.send(&Ask::new("GET", &page).header("accept", "text/html,*/*;q=0.8")).await;
    assert_eq!((html.status, html.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(html.text().contains(&format!("<section id=\"{code}\">")), "{}", html.text());
    // Where problem documents link elsewhere, the service may answer there.
    let docs = DocsBase::new("https://docs.example.com/errors/").unwrap();
    let elsewhere = Shop::layered(|layer| layer.docs(docs)).await;
    assert_eq!(elsewhere.send(&Ask::new("GET", &page)).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_clients_find_their_key_and_the_ids_of_both_requests() {
    let shop = Shop::layered(|layer| layer.profile(Profile::Stripe)).await;
    let ask = Ask::payment();
    let (first, retry) = (shop.send(&ask).await, shop.send(&ask).await);
    assert!(first.header("idempotency-key").is_some());
    assert_eq!(first.header("idempotency-key"), retry.header("idempotency-key"));
    assert_eq!(retry.header("original-request"), first.header("request-id"));
    assert_ne!(retry.header("request-id"), first.header("request-id"));
    let refused = shop.send(&ask.json("{}")).await;
    assert_eq!((refused.status, refused.header("stripe-should-retry")), (400, Some("false")));
    assert_eq!(refused.header("idempotency-key"), first.header("idempotency-key"));
    assert_eq!(refused.json()["error"]["type"], "idempotency_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn adcps_clients_get_their_context_back_in_refusals_and_no_others_do() {
    for (profile, echoed) in [(Profile::Adcp, true), (Profile::Ietf, false)] {
        let shop = Shop::layered(|layer| layer.profile(profile)).await;
        let ask = Ask::payment();
        assert_eq!(shop.send(&ask.clone().json(r#"{"amount":1,"context":{"n":1.50}}"#)).await.status, 201);
        let other = shop.send(&ask.clone().json(r#"{"amount":2,"context":{"n":1.50}}"#)).await;
        assert_eq!(other.text().contains(r#""context":{"n":1.50}}"#), echoed, "{other:?}");
        assert!(other.json().is_object());
        for body in ["{}", "[1]", r#"{"context":1"#] {
            let refused = shop.send(&ask.clone().json(body)).await;
            assert!(refused.status >= 400 && refused.json().get("context").is_none(), "{refused:?}");
        }
        let replay = shop.send(&ask.json(r#"{"amount":1,"context":{"n":1.50}}"#)).await;
        assert!(replay.status == 201 && !replay.text().contains("context"), "{replay:?}");
    }
}
