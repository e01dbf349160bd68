//! The gateway in front of a tonic service.

use crate::program::{KEY, client, payment, tells, told};
use crate::slow;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_executes_a_call_once_and_replays_how_it_ended() {
    let (service, address) = slow::start().await;
    service.gate.add_permits(10);
    let mut shop = client(address).await;
    let first = shop.create(payment("10.00", Some(KEY))).await.unwrap();
    assert_eq!(told(&first, "x-cost"), Some("7"));
    let retry = shop.create(payment("10.00", Some(KEY))).await.unwrap();
    assert_eq!((retry.get_ref(), told(&retry, "idempotent-replayed")), (first.get_ref(), Some("true")));

    // A call that failed for good is nothing but its end, and is replayed as such.
    for replayed in [false, true] {
        let declined = shop.create(payment("declined", Some("key-of-the-second-order"))).await.unwrap_err();
        assert_eq!((declined.code(), declined.message()), (Code::FailedPrecondition, "declined"));
        assert_eq!(declined.metadata().contains_key("idempotent-replayed"), replayed);
    }
    assert_eq!(service.effects(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_service_cannot_vouch_for_stays_in_doubt() {
    let (service, address) = slow::start().await;
    service.gate.add_permits(10);
    let mut shop = client(address).await;
    for attempt in ["first", "retry"] {
        let lost = shop.create(payment("lost", Some(KEY))).await.unwrap_err();
        assert_eq!(lost.code(), Code::Unavailable, "{attempt}");
        assert!(tells(&lost, "IDEMPOTENCY_OUTCOME_UNKNOWN") && tells(&lost, "google.rpc.RetryInfo"));
        assert!(lost.metadata().contains_key("grpc-retry-pushback-ms"));
    }
    assert_eq!(service.effects(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_of_a_call_in_progress_is_told_to_come_back() {
    let (service, address) = slow::start().await;
    let first = tokio::spawn(async move { client(address).await.create(payment("10.00", Some(KEY))).await });
    service.entered.acquire().await.unwrap().forget();
    let mut shop = client(address).await;
    let second = shop.create(payment("10.00", Some(KEY))).await.unwrap_err();
    assert_eq!(second.code(), Code::Unavailable);
    assert!(tells(&second, "IDEMPOTENCY_KEY_IN_PROGRESS") && tells(&second, "operation_id"));
    service.gate.add_permits(1);
    let first = first.await.unwrap().unwrap();
    let third = shop.create(payment("10.00", Some(KEY))).await.unwrap();
    assert_eq!((third.get_ref(), service.effects()), (first.get_ref(), 1));
}
