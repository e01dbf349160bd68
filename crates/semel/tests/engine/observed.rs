//! What is counted, and that it is counted once.

use crate::support::{LEASE, STORE_TIMEOUT, Shop, command, completed, retryable, waiting};
use semel::observe::StoreCall;
use semel::{Decision, Expired, Outcome, Policy, Resource, Settling, Stale};
use semel_testing::store::{Call, Fault, Gate};
use std::time::Duration;

fn with_resource(body: &'static str) -> Outcome {
    let Outcome::Completed { response, .. } = completed(body) else { unreachable!() };
    Outcome::Completed { response, resource: Some(Resource { kind: "payment".into(), id: "pay_1".into() }) }
}

#[tokio::test(start_paused = true)]
async fn a_new_operation_its_duplicates_and_its_retries() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    shop.decide().await;
    shop.decide().await;
    ticket.finish(with_resource("once")).await.unwrap();
    shop.decide().await;
    shop.ask(&command("99.00")).await.unwrap();
    assert_eq!(
        shop.counted.events(),
        [
            ("reserve_created", 1),
            ("reserve_in_progress", 2),
            ("reserve_key_misuse", 1),
            ("reserve_replay", 1)
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_counted_by_what_it_is_told_in_the_end() {
    let shop = Shop::with(waiting(Duration::from_secs(5)));
    let ticket = shop.execute().await;
    let waiter = tokio::spawn({
        let shop = shop.clone();
        async move { shop.decide().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    ticket.finish(with_resource("once")).await.unwrap();
    assert!(matches!(waiter.await.unwrap(), Decision::Replay(_)));
    assert_eq!(shop.counted.events(), [("reserve_created", 1), ("reserve_replay", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_did_nothing_is_executed_again_and_so_counted() {
    let shop = Shop::new();
    shop.execute().await.finish(retryable()).await.unwrap();
    shop.execute().await.finish(with_resource("second")).await.unwrap();
    assert_eq!(shop.counted.events(), [("reserve_created", 1), ("reserve_failed_retry", 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_stored_is_a_replay_too() {
    let shop = Shop::new();
    shop.execute().await.finish(Outcome::Completed { response: None, resource: None }).await.unwrap();
    assert!(matches!(shop.decide().await, Decision::NotStored(_)));
    assert_eq!(
        shop.counted.events(),
        [("completed_without_resource", 1), ("reserve_created", 1), ("reserve_replay", 1)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_is_one_zombie_however_many_come_by() {
    let shop = Shop::with(Policy { settling: Settling::Webhook, ..Policy::default() });
    let ticket = shop.execute().await;
    shop.clock.advance(LEASE);
    for _ in 0..3 {
        assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    }
    assert_eq!(
        shop.counted.events(),
        [("reconcile_scheduled", 1), ("reserve_created", 1), ("reserve_unknown", 3), ("zombie_key", 1)]
    );
    ticket.finish(with_resource("late")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_takeover_is_a_zombie_and_no_new_reservation() {
    let shop = Shop::with(Policy { stale: Stale::Resume, ..Policy::default() });
    let first = shop.execute().await;
    shop.clock.advance(LEASE);
    shop.execute().await.finish(with_resource("second")).await.unwrap();
    assert_eq!(shop.counted.events(), [("reserve_created", 1), ("zombie_key", 1)]);
    drop(first);
}

#[tokio::test(start_paused = true)]
async fn doubt_that_only_a_person_can_settle_is_a_failed_reconciliation_at_once() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    assert_eq!(shop.counted.events(), [("reconcile_failed", 1), ("reserve_created", 1)]);
}

#[tokio::test(start_paused = true)]
async fn doubt_of_a_ticket_that_goes_on_is_counted_once() {
    let shop = Shop::with(Policy {
        settling: Settling::Poll { first: Duration::from_secs(5) },
        ..Policy::default()
    });
    let ticket = shop.execute().await;
    ticket.doubt("timeout").await;
    ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    assert_eq!(shop.counted.events(), [("reconcile_scheduled", 1), ("reserve_created", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_after_its_window_is_counted_refused_or_not() {
    for expired in [Expired::Refuse, Expired::New] {
        let shop = Shop::with(Policy { expired, ..Policy::default() });
        shop.execute().await.finish(with_resource("old")).await.unwrap();
        shop.clock.advance(shop.policy.retention);
        let second = shop.decide().await;
        let created = match (expired, second) {
            (Expired::Refuse, Decision::Expired { .. }) => 1,
            (Expired::New, Decision::Execute(ticket)) => {
                ticket.finish(with_resource("new")).await.unwrap();
                2
            }
            (_, other) => panic!("{other:?}"),
        };
        assert_eq!(shop.counted.events(), [("expired_retry", 1), ("reserve_created", created)]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_back_after_its_tombstone_is_new_and_nothing_else() {
    let shop = Shop::new();
    shop.execute().await.finish(with_resource("old")).await.unwrap();
    shop.clock.advance(shop.policy.retention + shop.policy.tombstone);
    shop.execute().await.finish(with_resource("new")).await.unwrap();
    assert_eq!(shop.counted.events(), [("reserve_created", 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_a_request_or_an_outcome_is_counted() {
    let shop = Shop::new();
    shop.store.next(Call::Create, [Fault::Unavailable]);
    assert!(shop.begin().await.is_err());
    assert_eq!(shop.counted.events(), [("store_error", 1)]);
    let ticket = shop.execute().await;
    shop.store.next(Call::Swap, [Fault::Unavailable, Fault::Unavailable]);
    ticket.finish(with_resource("once")).await.unwrap();
    assert_eq!(shop.counted.events(), [("reserve_created", 1), ("store_error", 3)]);
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_was_read_back_is_counted_as_made() {
    let shop = Shop::new();
    shop.store.next(Call::Create, [Fault::LostAnswer]);
    shop.execute().await.finish(with_resource("once")).await.unwrap();
    assert_eq!(shop.counted.events(), [("reserve_created", 1)]);
}

#[tokio::test(start_paused = true)]
async fn calls_to_the_store_are_timed_and_batches_measured() {
    let shop = Shop::new();
    let gate = Gate::new();
    shop.store.next(Call::Create, [Fault::Held(gate.clone())]);
    let begin = || {
        let shop = shop.clone();
        tokio::spawn(async move { shop.begin().await })
    };
    let first = begin();
    gate.reached().await;
    let more: Vec<_> = (0..4).map(|_| begin()).collect();
    // Everybody else waits for the call that is under way, and shares the next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    gate.open();
    let ticket = first.await.unwrap().unwrap();
    for duplicate in more {
        duplicate.await.unwrap().unwrap();
    }
    assert_eq!(shop.counted.batches(StoreCall::Create), [1, 4]);
    assert_eq!(shop.counted.batches(StoreCall::Create), shop.store.batches(Call::Create));
    let calls = shop.counted.calls(StoreCall::Create);
    assert_eq!(calls[0], (Duration::from_millis(500), true));
    assert_eq!(calls.len(), 2);

    shop.store.next(Call::Create, [Fault::Hang]);
    assert!(shop.begin().await.is_err());
    assert_eq!(shop.counted.calls(StoreCall::Create)[2], (STORE_TIMEOUT, false));
    drop(ticket);
}
