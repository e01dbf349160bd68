//! Every counter, driven through the layer where it can be, and read as Prometheus reads it.

use crate::support::{AdminApi, Ask, Call, Fault, KEY, Opening, get, value};
use semel::observe::Event;
use semel::{Expired, Policy, Settling};
use semel_tower::KeyRequirement;
use std::time::Duration;

/// All counters that are not zero, of the operation that most requests ask for.
async fn counted(admin: &AdminApi) -> Vec<(&'static str, u64)> {
    let text = get("/metrics").send(&admin.admin).await;
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

async fn held(admin: &AdminApi, ask: &Ask) -> tokio::task::JoinHandle<crate::support::Answer> {
    let (ask, address) = (ask.clone().held(), admin.shop.address);
    let held = tokio::spawn(async move { ask.send_to(address).await });
    admin.till.gate.reached().await;
    held
}

#[tokio::test]
async fn everything_is_zero_at_first_and_there() {
    let admin = AdminApi::open().await;
    assert_eq!(counted(&admin).await, []);
}

#[tokio::test]
async fn metrics_are_classic_text_unless_openmetrics_is_asked_for() {
    let admin = AdminApi::open().await;
    const PROMETHEUS: &str =
        "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.2";
    for (accept, openmetrics) in
        [(None, false), (Some("*/*"), false), (Some("text/plain"), false), (Some(PROMETHEUS), true)]
    {
        let asked = accept.map_or_else(|| get("/metrics"), |accept| get("/metrics").header("accept", accept));
        let answer = asked.send(&admin.admin).await;
        let content_type = answer.header("content-type").unwrap();
        let (expected, described) = match openmetrics {
            true => (
                "application/openmetrics-text; version=1.0.0",
                "# TYPE api_idempotency_reserve_created counter\n",
            ),
            false => ("text/plain; version=0.0.4", "# TYPE api_idempotency_reserve_created_total counter\n"),
        };
        assert!(content_type.starts_with(expected), "{accept:?}: {content_type}");
        assert!(answer.text().contains(described), "{accept:?}");
        assert_eq!(answer.text().ends_with("# EOF\n"), openmetrics, "{accept:?}");
        assert!(answer.text().contains("\napi_idempotency_reserve_created_total{"), "{accept:?}");
    }
}

#[tokio::test]
async fn created_replayed_and_misused() {
    let admin = AdminApi::open().await;
    let ask = with_resource(Ask::payment());
    admin.pay(&ask).await;
    admin.pay(&ask).await;
    admin.pay(&ask).await;
    admin.pay(&ask.clone().body(r#"{"amount":"99.00"}"#)).await;
    assert_eq!(
        counted(&admin).await,
        [("reserve_created", 1), ("reserve_replay", 2), ("reserve_key_misuse", 1)]
    );
}

#[tokio::test]
async fn in_progress() {
    let admin = AdminApi::open().await;
    let ask = with_resource(Ask::payment());
    let first = held(&admin, &ask).await;
    for _ in 0..3 {
        assert_eq!(admin.pay(&ask).await.status, 409);
    }
    admin.till.gate.open();
    assert_eq!(first.await.unwrap().status, 201);
    assert_eq!(counted(&admin).await, [("reserve_created", 1), ("reserve_in_progress", 3)]);
}

#[tokio::test]
async fn a_failure_that_did_nothing_is_executed_again() {
    let admin = AdminApi::open().await;
    admin.pay(&Ask::payment().answered_with("semel-outcome", "retryable")).await;
    admin.pay(&with_resource(Ask::payment())).await;
    assert_eq!(counted(&admin).await, [("reserve_created", 1), ("reserve_failed_retry", 1)]);
}

#[tokio::test]
async fn unknown_scheduled_and_resolved() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful(KEY).await;
    admin.pay(&Ask::payment()).await;
    admin.pay(&Ask::payment()).await;
    assert_eq!(
        counted(&admin).await,
        [("reserve_created", 1), ("reserve_unknown", 2), ("reconcile_scheduled", 1)]
    );
    admin.resolve(id, r#"{"outcome":"not_executed","reason":"the bank never saw it","attempt":1}"#).await;
    assert_eq!(admin.counter("reconcile_resolved").await, 1);
}

#[tokio::test]
async fn doubt_without_anything_automatic_is_a_failed_reconciliation() {
    let policy = Policy { settling: Settling::Operator, ..Policy::default() };
    let admin = AdminApi::with(Opening { policy, ..Opening::default() }).await;
    admin.doubtful(KEY).await;
    assert_eq!(counted(&admin).await, [("reserve_created", 1), ("reconcile_failed", 1)]);
}

#[tokio::test]
async fn a_zombie_found_by_a_request() {
    let admin = AdminApi::open().await;
    let ask = with_resource(Ask::payment());
    let first = held(&admin, &ask).await;
    admin.clock.advance(Policy::default().lease);
    assert_eq!(admin.pay(&ask).await.code(), "idempotency_outcome_unknown");
    assert_eq!(admin.pay(&ask).await.code(), "idempotency_outcome_unknown");
    admin.till.gate.open();
    assert_eq!(first.await.unwrap().status, 201, "its owner was alive after all");
    assert_eq!(
        counted(&admin).await,
        [("reserve_created", 1), ("reserve_unknown", 2), ("zombie_key", 1), ("reconcile_scheduled", 1)]
    );
}

#[tokio::test]
async fn a_store_that_fails() {
    let admin = AdminApi::open().await;
    admin.store.next(Call::Create, [Fault::Unavailable]);
    assert_eq!(admin.pay(&Ask::payment()).await.status, 503);
    assert_eq!(counted(&admin).await, [("store_error", 1)]);
    let failed = r#"api_idempotency_store_seconds_count{call="create",result="error"}"#;
    assert_eq!(admin.metric(failed).await, 1.0);
}

#[tokio::test]
async fn a_missing_key_is_counted_where_it_is_required_and_where_it_is_not() {
    for key in [KeyRequirement::Required, KeyRequirement::Optional] {
        let admin = AdminApi::with(Opening { key, ..Opening::default() }).await;
        let answer = admin.pay(&Ask::payment().without("idempotency-key")).await;
        assert_eq!(answer.status, if key == KeyRequirement::Required { 400 } else { 201 });
        assert_eq!(counted(&admin).await, [("missing_key", 1)]);
    }
}

#[tokio::test]
async fn a_key_that_comes_back_after_its_window() {
    for (expired, created) in [(Expired::Refuse, 1), (Expired::New, 2)] {
        let policy = Policy { expired, ..Policy::default() };
        let admin = AdminApi::with(Opening { policy, ..Opening::default() }).await;
        let ask = with_resource(Ask::payment());
        admin.pay(&ask).await;
        admin.clock.advance(Policy::default().retention);
        admin.pay(&ask).await;
        assert_eq!(counted(&admin).await, [("reserve_created", created), ("expired_retry", 1)]);
    }
}

#[tokio::test]
async fn a_completion_that_names_no_resource() {
    let admin = AdminApi::open().await;
    admin.pay(&Ask::payment()).await;
    admin.pay(&with_resource(Ask::payment().key("another-key-00000001"))).await;
    // A failure has none to name.
    admin.pay(&Ask::payment().key("another-key-00000002").status(422)).await;
    assert_eq!(counted(&admin).await, [("reserve_created", 3), ("completed_without_resource", 1)]);
}

#[tokio::test]
async fn what_the_workers_will_tell_is_counted_too() {
    let admin = AdminApi::open().await;
    for event in [Event::TtlPruned, Event::ReconcileFailed, Event::ZombieKey] {
        admin.engine.observer().unwrap().count("create_payment", event);
    }
    assert_eq!(counted(&admin).await, [("zombie_key", 1), ("ttl_pruned", 1), ("reconcile_failed", 1)]);
}

#[tokio::test]
async fn operations_are_told_apart_and_what_is_not_configured_shares_a_label() {
    let admin = AdminApi::open().await;
    admin.pay(&Ask::payment()).await;
    for number in 0..3 {
        let ask = Ask::new("POST", &format!("/payments/{number}/notes")).key(KEY).json("{}");
        assert_eq!(admin.pay(&ask).await.status, 201);
    }
    let series = |label: &str| format!("api_idempotency_reserve_created_total{{operation=\"{label}\"}}");
    assert_eq!(admin.metric(&series("create_payment")).await, 1.0);
    assert_eq!(admin.metric(&series("create_refund")).await, 0.0);
    assert_eq!(admin.metric(&series("unconfigured")).await, 3.0);
    let text = get("/metrics").send(&admin.admin).await;
    assert!(!text.text().contains("notes"), "no path becomes a label");
}

#[tokio::test]
async fn requests_calls_and_batches_are_measured() {
    let admin = AdminApi::open().await;
    let ask = with_resource(Ask::payment());
    admin.pay(&ask).await;
    admin.pay(&ask).await;
    assert_eq!(
        admin.metric(r#"api_idempotency_request_seconds_count{operation="create_payment"}"#).await,
        2.0
    );
    let sum = admin.metric(r#"api_idempotency_request_seconds_sum{operation="create_payment"}"#).await;
    assert!(sum > 0.0 && sum < Duration::from_secs(60).as_secs_f64(), "{sum}");
    // A reservation, which the retry finds, and a completion.
    for (call, calls) in [("create", 2.0), ("swap", 1.0)] {
        let ok = format!(r#"api_idempotency_store_seconds_count{{call="{call}",result="ok"}}"#);
        assert_eq!(admin.metric(&ok).await, calls, "{call}");
        assert_eq!(
            admin.metric(&format!(r#"api_idempotency_batch_size_count{{call="{call}"}}"#)).await,
            calls
        );
        let alone = format!(r#"api_idempotency_batch_size_bucket{{le="1.0",call="{call}"}}"#);
        assert_eq!(admin.metric(&alone).await, calls, "nobody shared");
    }
}
