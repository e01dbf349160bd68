//! The status of every code that can be reached, in both published profiles.

use crate::support::{Answer, Ask, Call, Fault, Shop};
use semel::problem::Profile;
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
    let ask = Ask::payment().header("x-account", "1");
    let told = |answer: Answer| (answer.status, answer.code());
    let mut problems = vec![
        told(shop.send(&ask.clone().without("idempotency-key")).await),
        told(shop.send(&ask.clone().key("short")).await),
        told(shop.send(&Ask::payment()).await),
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

    let doubtful = ask.key("key-of-a-doubtful-one").status(502);
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
