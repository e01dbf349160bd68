//! Every counter, driven through the layer where it can be, and read as Prometheus reads it.

use crate::support::{Ask, Call, Fault, KEY, Office, Opening, get, value};
use semel::observe::Event;
use semel::{Expired, Policy, Settling};
use semel_tower::KeyRequirement;
use std::time::Duration;

/// All counters that are not zero, of the operation that most requests ask for.
async fn counted(office: &Office) -> Vec<(&'static str, u64)> {
    let text = get("/metrics").send(&office.admin).await;
    assert_eq!(text.status, 200);
    Event::ALL
        .into_iter()
        .map(|event| {
            let series = format!("api_idempotency_{}_total{{operation=\"create_payment\"}}", event.as_str());
            (event.as_str(), value(text.text(), &series).unwrap_or_else(|| panic!("no {series}")) as u64)
        })
        .filter(|(_, count)| *count > 0)
        .collect()
}

fn with_resource(ask: Ask) -> Ask {
    ask.answered_with("semel-resource", "payment/pay_1")
}

async fn held(office: &Office, ask: &Ask) -> tokio::task::JoinHandle<crate::support::Answer> {
    let (ask, address) = (ask.clone().held(), office.shop.address);
    let held = tokio::spawn(async move { ask.send_to(address).await });
    office.till.gate.reached().await;
    held
}

#[tokio::test]
async fn everything_is_zero_at_first_and_there() {
    let office = Office::open().await;
    assert_eq!(counted(&office).await, []);
    let answer = get("/metrics").send(&office.admin).await;
    let content_type = answer.header("content-type").unwrap();
    assert!(content_type.starts_with("application/openmetrics-text"), "{content_type}");
    assert!(answer.text().ends_with("# EOF\n"));
}

#[tokio::test]
async fn created_replayed_and_misused() {
    let office = Office::open().await;
    let ask = with_resource(Ask::payment());
    office.pay(&ask).await;
    office.pay(&ask).await;
    office.pay(&ask).await;
    office.pay(&ask.clone().body(r#"{"amount":"99.00"}"#)).await;
    assert_eq!(
        counted(&office).await,
        [("reserve_created", 1), ("reserve_replay", 2), ("reserve_key_misuse", 1)]
    );
}

#[tokio::test]
async fn in_progress() {
    let office = Office::open().await;
    let ask = with_resource(Ask::payment());
    let first = held(&office, &ask).await;
    for _ in 0..3 {
        assert_eq!(office.pay(&ask).await.status, 409);
    }
    office.till.gate.open();
    assert_eq!(first.await.unwrap().status, 201);
    assert_eq!(counted(&office).await, [("reserve_created", 1), ("reserve_in_progress", 3)]);
}

#[tokio::test]
async fn a_failure_that_did_nothing_is_executed_again() {
    let office = Office::open().await;
    office.pay(&Ask::payment().answered_with("semel-outcome", "retryable")).await;
    office.pay(&with_resource(Ask::payment())).await;
    assert_eq!(counted(&office).await, [("reserve_created", 1), ("reserve_failed_retry", 1)]);
}

#[tokio::test]
async fn unknown_scheduled_and_resolved() {
    let office = Office::open().await;
    let id = office.doubtful(KEY).await;
    office.pay(&Ask::payment()).await;
    office.pay(&Ask::payment()).await;
    assert_eq!(
        counted(&office).await,
        [("reserve_created", 1), ("reserve_unknown", 2), ("reconcile_scheduled", 1)]
    );
    office.resolve(id, r#"{"outcome":"not_executed","reason":"the bank never saw it","attempt":1}"#).await;
    assert_eq!(office.counter("reconcile_resolved").await, 1);
}

#[tokio::test]
async fn doubt_without_anything_automatic_is_a_failed_reconciliation() {
    let policy = Policy { settling: Settling::Operator, ..Policy::default() };
    let office = Office::with(Opening { policy, ..Opening::default() }).await;
    office.doubtful(KEY).await;
    assert_eq!(counted(&office).await, [("reserve_created", 1), ("reconcile_failed", 1)]);
}

#[tokio::test]
async fn a_zombie_found_by_a_request() {
    let office = Office::open().await;
    let ask = with_resource(Ask::payment());
    let first = held(&office, &ask).await;
    office.clock.advance(Policy::default().lease);
    assert_eq!(office.pay(&ask).await.code(), "idempotency_outcome_unknown");
    assert_eq!(office.pay(&ask).await.code(), "idempotency_outcome_unknown");
    office.till.gate.open();
    assert_eq!(first.await.unwrap().status, 201, "its owner was alive after all");
    assert_eq!(
        counted(&office).await,
        [("reserve_created", 1), ("reserve_unknown", 2), ("zombie_key", 1), ("reconcile_scheduled", 1)]
    );
}

#[tokio::test]
async fn a_store_that_fails() {
    let office = Office::open().await;
    office.store.next(Call::Create, [Fault::Unavailable]);
    assert_eq!(office.pay(&Ask::payment()).await.status, 503);
    assert_eq!(counted(&office).await, [("store_error", 1)]);
    let failed = r#"api_idempotency_store_seconds_count{call="create",result="error"}"#;
    assert_eq!(office.metric(failed).await, 1.0);
}

#[tokio::test]
async fn a_missing_key_is_counted_where_it_is_required_and_where_it_is_not() {
    for key in [KeyRequirement::Required, KeyRequirement::Optional] {
        let office = Office::with(Opening { key, ..Opening::default() }).await;
        let answer = office.pay(&Ask::payment().without("idempotency-key")).await;
        assert_eq!(answer.status, if key == KeyRequirement::Required { 400 } else { 201 });
        assert_eq!(counted(&office).await, [("missing_key", 1)]);
    }
}

#[tokio::test]
async fn a_key_that_comes_back_after_its_window() {
    for (expired, created) in [(Expired::Refuse, 1), (Expired::New, 2)] {
        let policy = Policy { expired, ..Policy::default() };
        let office = Office::with(Opening { policy, ..Opening::default() }).await;
        let ask = with_resource(Ask::payment());
        office.pay(&ask).await;
        office.clock.advance(Policy::default().retention);
        office.pay(&ask).await;
        assert_eq!(counted(&office).await, [("reserve_created", created), ("expired_retry", 1)]);
    }
}

#[tokio::test]
async fn a_completion_that_names_no_resource() {
    let office = Office::open().await;
    office.pay(&Ask::payment()).await;
    office.pay(&with_resource(Ask::payment().key("another-key-00000001"))).await;
    // A failure has none to name.
    office.pay(&Ask::payment().key("another-key-00000002").status(422)).await;
    assert_eq!(counted(&office).await, [("reserve_created", 3), ("completed_without_resource", 1)]);
}

#[tokio::test]
async fn what_the_workers_will_tell_is_counted_too() {
    let office = Office::open().await;
    for event in [Event::TtlPruned, Event::ReconcileFailed, Event::ZombieKey] {
        office.engine.observer().unwrap().count("create_payment", event);
    }
    assert_eq!(counted(&office).await, [("zombie_key", 1), ("ttl_pruned", 1), ("reconcile_failed", 1)]);
}

#[tokio::test]
async fn operations_are_told_apart_and_what_is_not_configured_shares_a_label() {
    let office = Office::open().await;
    office.pay(&Ask::payment()).await;
    for number in 0..3 {
        let ask = Ask::new("POST", &format!("/payments/{number}/notes")).key(KEY).json("{}");
        assert_eq!(office.pay(&ask).await.status, 201);
    }
    let series = |label: &str| format!("api_idempotency_reserve_created_total{{operation=\"{label}\"}}");
    assert_eq!(office.metric(&series("create_payment")).await, 1.0);
    assert_eq!(office.metric(&series("create_refund")).await, 0.0);
    assert_eq!(office.metric(&series("unconfigured")).await, 3.0);
    let text = get("/metrics").send(&office.admin).await;
    assert!(!text.text().contains("notes"), "no path becomes a label");
}

#[tokio::test]
async fn requests_calls_and_batches_are_measured() {
    let office = Office::open().await;
    let ask = with_resource(Ask::payment());
    office.pay(&ask).await;
    office.pay(&ask).await;
    assert_eq!(
        office.metric(r#"api_idempotency_request_seconds_count{operation="create_payment"}"#).await,
        2.0
    );
    let sum = office.metric(r#"api_idempotency_request_seconds_sum{operation="create_payment"}"#).await;
    assert!(sum > 0.0 && sum < Duration::from_secs(60).as_secs_f64(), "{sum}");
    // A reservation, which the retry finds, and a completion.
    for (call, calls) in [("create", 2.0), ("swap", 1.0)] {
        let ok = format!(r#"api_idempotency_store_seconds_count{{call="{call}",result="ok"}}"#);
        assert_eq!(office.metric(&ok).await, calls, "{call}");
        assert_eq!(
            office.metric(&format!(r#"api_idempotency_batch_size_count{{call="{call}"}}"#)).await,
            calls
        );
        let alone = format!(r#"api_idempotency_batch_size_bucket{{le="1.0",call="{call}"}}"#);
        assert_eq!(office.metric(&alone).await, calls, "nobody shared");
    }
}
