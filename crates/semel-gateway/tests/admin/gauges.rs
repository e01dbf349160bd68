//! What the store says is open, at the moment of the scrape.

use crate::support::{AdminApi, Ask, Call, Fault, KEY, Opening, get};
use semel::{Policy, RecordKey, State, Store as _};
use semel_conformance::samples::in_state;
use std::time::Duration;

fn gauge(name: &str, operation: &str) -> String {
    format!("api_idempotency_{name}{{operation=\"{operation}\"}}")
}

#[tokio::test]
async fn an_empty_store_has_nothing_open() {
    for admin in AdminApi::on_every_store().await {
        for name in ["in_progress_oldest_seconds", "unknown_oldest_seconds", "unknown", "dead_letters"] {
            for operation in ["create_payment", "create_refund", "unconfigured"] {
                assert_eq!(admin.metric(&gauge(name, operation)).await, 0.0, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn ages_and_numbers_are_those_of_the_store() {
    let admin = AdminApi::with(Opening { policy: Policy::default(), ..Opening::default() }).await;
    admin.doubtful(KEY).await;
    admin.clock.advance(Duration::from_secs(7));
    admin.doubtful("another-key-00000001").await;
    let held = tokio::spawn({
        let (ask, address) = (Ask::payment().key("another-key-00000002").held(), admin.shop.address);
        async move { ask.send_to(address).await }
    });
    admin.till.gate.reached().await;
    admin.clock.advance(Duration::from_secs(5));
    assert_eq!(admin.metric(&gauge("in_progress_oldest_seconds", "create_payment")).await, 5.0);
    assert_eq!(admin.metric(&gauge("unknown_oldest_seconds", "create_payment")).await, 12.0);
    assert_eq!(admin.metric(&gauge("unknown", "create_payment")).await, 2.0);
    assert_eq!(admin.metric(&gauge("dead_letters", "create_payment")).await, 2.0);
    assert_eq!(admin.metric(&gauge("unknown", "create_refund")).await, 0.0);
    let stats = admin.get("/v1/stats").await.json();
    assert_eq!(
        (&stats["unknown"], &stats["in_progress"], &stats["dead_letters"]),
        (&2.into(), &1.into(), &2.into())
    );
    assert_eq!(stats["unknown_oldest_seconds"], 12.0);
    assert_eq!(stats["operations"]["create_payment"]["in_progress_oldest_seconds"], 5.0);
    assert_eq!((&stats["executing_here"], &stats["complete"]), (&1.into(), &true.into()));
    admin.till.gate.open();
    held.await.unwrap();
}

#[tokio::test]
async fn a_store_that_does_not_answer_takes_the_gauges_away_and_leaves_the_counters() {
    let admin =
        AdminApi::with(Opening { store_timeout: Duration::from_millis(200), ..Opening::default() }).await;
    admin.store.always(Call::Read, Fault::Hang);
    let text = get("/metrics").send(&admin.admin).await;
    assert_eq!(text.status, 200);
    assert!(!text.text().contains("\napi_idempotency_unknown{"), "an old number would look like good news");
    assert!(text.text().contains("\napi_idempotency_reserve_created_total{"));
    let stats = admin.get("/v1/stats").await;
    assert_eq!((stats.status, crate::support::problem(&stats)), (503, "admin_store_unavailable".into()));
}

#[tokio::test]
async fn more_than_can_be_counted_is_said_to_be_at_least_that() {
    let admin = AdminApi::open().await;
    // The dead letters are the oldest: newer doubt must not hide them.
    for number in 0..10_050 {
        let mut draft =
            in_state(State::Unknown, RecordKey::new("acme", "create_payment", format!("key-{number}")));
        draft.dead_letter = number < 30;
        admin.store.create(vec![draft]).await.unwrap();
    }
    let stats = admin.get("/v1/stats").await.json();
    assert_eq!((&stats["unknown"], &stats["complete"]), (&10_000.into(), &false.into()));
    assert_eq!(stats["dead_letters"], 30);
}
