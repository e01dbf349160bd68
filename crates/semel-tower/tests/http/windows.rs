//! What is kept of an answer and for how long, and what a duplicate gets meanwhile.

use crate::support::{Answer, Ask, Shop};
use semel::{Expired, InFlight, Policy, State, StoreResponse};
use semel_tower::{Protection, ValidProtection};
use std::sync::Arc;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

async fn under(policy: Policy) -> Shop {
    Shop::protected(Protection { policy: Arc::new(policy), ..Protection::default() }).await
}

fn short() -> Policy {
    Policy {
        retention: 10 * MINUTE,
        body_retention: 10 * MINUTE,
        tombstone: 20 * MINUTE,
        ..Policy::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_is_refused_and_once_forgotten_it_is_new() {
    let shop = under(short()).await;
    let first = shop.send(&Ask::payment()).await;
    shop.clock.advance(10 * MINUTE - Duration::from_secs(1));
    assert!(shop.send(&Ask::payment()).await.is_replay());
    shop.clock.advance(Duration::from_secs(1));
    let expired = shop.send(&Ask::payment()).await;
    assert_eq!((expired.status, expired.code().as_str()), (422, "idempotency_key_expired"));
    assert_eq!(expired.operation_id(), first.operation_id());
    assert_eq!(shop.till.effects(), 1);
    shop.clock.advance(20 * MINUTE);
    let second = shop.send(&Ask::payment()).await;
    assert_eq!((second.status, second.text(), second.is_replay()), (201, "effect 2", false));
    assert_ne!(second.operation_id(), first.operation_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_is_new_work_where_the_policy_says_so() {
    let shop = under(Policy { expired: Expired::New, ..short() }).await;
    shop.send(&Ask::payment()).await;
    shop.clock.advance(10 * MINUTE);
    let second = shop.send(&Ask::payment().json(r#"{"amount":"99.00"}"#)).await;
    assert_eq!((second.status, second.text()), (201, "effect 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_go_before_its_record() {
    let shop = under(Policy { body_retention: MINUTE, ..short() }).await;
    let ask = Ask::payment().answered_with("semel-resource", "payment/pay_1");
    shop.send(&ask).await;
    assert!(shop.send(&ask).await.is_replay());
    shop.clock.advance(MINUTE);
    let retry = shop.send(&ask).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
    assert_eq!(retry.json()["resource"], serde_json::json!({ "type": "payment", "id": "pay_1" }));
    assert_eq!(shop.till.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_only_a_reference_is_kept_retries_are_told_where_to_look() {
    let shop = under(Policy { store_response: StoreResponse::Reference, ..Policy::default() }).await;
    let ask = Ask::payment().answered_with("semel-resource", "payment/pay_1");
    let first = shop.send(&ask).await;
    assert_eq!((first.status, first.text()), (201, "effect 1"));
    let retry = shop.send(&ask).await;
    assert_eq!((retry.status, retry.code().as_str()), (409, "idempotency_response_not_stored"));
    assert_eq!(retry.json()["resource"], serde_json::json!({ "type": "payment", "id": "pay_1" }));
    assert_eq!(retry.json()["upstream_status"], 201);
    assert_eq!(shop.till.effects(), 1);
    for name in ["semel.db", "semel.db-wal"] {
        let bytes = std::fs::read(shop.file().with_file_name(name)).unwrap();
        assert!(!bytes.windows(8).any(|window| window == b"effect 1"), "the body is not in {name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_accepted_where_the_policy_says_so() {
    let shop = under(Policy { in_flight: InFlight::Accepted, ..Policy::default() }).await;
    let line = Ask::payment().held().begin(&shop.server).await;
    shop.till.gate.reached().await;
    for code in ["idempotency_key_in_progress", "idempotency_outcome_unknown"] {
        let accepted = shop.send(&Ask::payment()).await;
        assert_eq!((accepted.status, accepted.code().as_str()), (202, code));
        assert!(accepted.header("retry-after").is_some());
        assert_eq!(accepted.header("content-type"), Some("application/json"));
        shop.clock.advance(Policy::default().lease);
    }
    shop.till.gate.open();
    let first = Answer::read(line).await;
    assert_eq!(first.status, 201);
    let replay = shop.send(&Ask::payment()).await;
    assert_eq!((replay.status, &replay.body, replay.is_replay()), (201, &first.body, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_waits_in_vain_gets_409() {
    for outcome in ["released", "retryable"] {
        let shop =
            under(Policy { in_flight: InFlight::Wait(Duration::from_secs(9)), ..Policy::default() }).await;
        let first = Ask::payment().held().answered_with("semel-outcome", outcome).begin(&shop.server).await;
        shop.till.gate.reached().await;
        let waiting = Ask::payment().begin(&shop.server).await;
        // It has looked at the store by now.
        while shop.store.batches(crate::support::Call::Read).is_empty() {
            tokio::task::yield_now().await;
        }
        shop.till.gate.open();
        assert_eq!(Answer::read(first).await.status, 201);
        let waited = Answer::read(waiting).await;
        assert_eq!((waited.status, waited.code().as_str()), (409, "idempotency_key_in_progress"));
        assert_eq!(shop.till.effects(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_unknown_never_expires() {
    let shop = under(short()).await;
    shop.send(&Ask::payment().status(502)).await;
    shop.clock.advance(1000 * MINUTE);
    let retry = shop.send(&Ask::payment()).await;
    assert_eq!(retry.code(), "idempotency_outcome_unknown");
    assert_eq!(shop.record().await.state, State::Unknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protection_that_cannot_keep_its_promise_is_refused() {
    let policy = Arc::new(Policy { lease: Duration::from_secs(5), ..Policy::default() });
    let slow = Protection { policy, timeout: Duration::from_secs(5), ..Protection::default() };
    let text = ValidProtection::try_from(slow).unwrap_err().to_string();
    assert!(text.contains("shorter than the lease"), "{text}");
    let policy = Arc::new(Policy { retention: Duration::ZERO, ..Policy::default() });
    assert!(ValidProtection::try_from(Protection { policy, ..Protection::default() }).is_err());
}
