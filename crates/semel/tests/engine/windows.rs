//! Windows are judged on every read, whether or not a reaper has come by.

use crate::sealing::tamper;
use crate::support::{LEASE, Shop, completed, replayed, retryable};
use semel::{Body, Decision, Expired, Policy, Resource, Settling, State, StoreResponse};
use semel_testing::store::{Call, Fault, Gate};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn short() -> Policy {
    Policy {
        retention: 10 * MINUTE,
        body_retention: 10 * MINUTE,
        tombstone: 20 * MINUTE,
        ..Policy::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_is_replayed_to_the_last_moment_of_its_window_then_refused_then_forgotten() {
    let shop = Shop::with(short());
    let ticket = shop.execute().await;
    let id = ticket.operation_id();
    ticket.finish(completed("once")).await.unwrap();
    let second = Duration::from_secs(1);
    shop.clock.advance(10 * MINUTE - second);
    assert_eq!(replayed(shop.decide().await), "once");
    shop.clock.advance(second);
    assert!(matches!(shop.decide().await, Decision::Expired { operation_id, .. } if operation_id == id));
    shop.clock.advance(20 * MINUTE - second);
    assert!(matches!(shop.decide().await, Decision::Expired { .. }));
    shop.clock.advance(second);
    let again = shop.execute().await;
    assert_ne!(again.operation_id(), id, "what is forgotten comes back as another operation");
    assert_eq!(again.attempt(), 1);
    again.finish(completed("twice")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "twice");
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_is_new_work_where_the_rules_say_so_even_with_another_request() {
    let shop = Shop::with(Policy { expired: Expired::New, ..short() });
    shop.execute().await.finish(completed("once")).await.unwrap();
    shop.clock.advance(10 * MINUTE);
    let Decision::Execute(ticket) = shop.ask(&crate::support::command("99.00")).await.unwrap() else {
        panic!()
    };
    ticket.finish(completed("again")).await.unwrap();
    assert!(matches!(shop.decide().await, Decision::KeyReused { .. }));
}

/// A record whose answer is gone with its window, read by a moment half a second before the window's end: what a store shows that reads record and
/// answer after the moment it names.
async fn read_before_its_end(shop: &Shop) {
    shop.execute().await.finish(completed("once")).await.unwrap();
    shop.clock.advance(10 * MINUTE - Duration::from_millis(500));
    tamper(shop, |record| record.response.as_mut().unwrap().body = Body::Dropped).await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_key_is_new_work_though_it_was_read_a_moment_before_its_end() {
    let shop = Shop::with(Policy { expired: Expired::New, ..short() });
    read_before_its_end(&shop).await;
    let gate = Gate::new();
    shop.store.next(Call::Read, [Fault::Held(gate.clone())]);
    let asking = tokio::spawn({
        let shop = shop.clone();
        async move { shop.decide().await }
    });
    gate.reached().await;
    shop.clock.advance(Duration::from_millis(500));
    gate.open();
    let Decision::Execute(ticket) = asking.await.unwrap() else { panic!("the key is new") };
    ticket.finish(completed("again")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "again");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_lost_shortly_before_its_end_is_no_new_work() {
    let shop = Shop::with(Policy { expired: Expired::New, ..short() });
    read_before_its_end(&shop).await;
    assert!(matches!(shop.decide().await, Decision::Expired { .. }), "its window runs still");
}

#[tokio::test(start_paused = true)]
async fn a_retryable_failure_expires_too() {
    let shop = Shop::with(short());
    shop.execute().await.finish(retryable()).await.unwrap();
    shop.clock.advance(10 * MINUTE);
    assert!(matches!(shop.decide().await, Decision::Expired { .. }));
}

#[tokio::test(start_paused = true)]
async fn what_is_in_progress_or_unknown_never_expires() {
    let shop = Shop::with(short());
    let ticket = shop.execute().await;
    shop.clock.advance(100 * MINUTE);
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    shop.clock.advance(1_000_000 * MINUTE);
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    ticket.finish(completed("late")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "late", "its window runs from now");
}

#[tokio::test(start_paused = true)]
async fn a_body_may_go_before_its_record() {
    let shop = Shop::with(Policy { body_retention: MINUTE, ..short() });
    let made = Resource { kind: "payment".into(), id: "pay_1".into() };
    let outcome = semel::Outcome::Completed {
        response: Some(crate::support::answer("once")),
        resource: Some(made.clone()),
    };
    shop.execute().await.finish(outcome).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "once");
    shop.clock.advance(MINUTE);
    let Decision::NotStored(record) = shop.decide().await else { panic!() };
    assert_eq!(record.resource, Some(made));
}

#[tokio::test(start_paused = true)]
async fn where_a_reference_is_kept_the_answer_is_not() {
    let shop = Shop::with(Policy { store_response: StoreResponse::Reference, ..Policy::default() });
    let made = Resource { kind: "payment".into(), id: "pay_1".into() };
    let outcome = semel::Outcome::Completed {
        response: Some(crate::support::answer("secret")),
        resource: Some(made.clone()),
    };
    shop.execute().await.finish(outcome).await.unwrap();
    let Decision::NotStored(record) = shop.decide().await else { panic!() };
    assert_eq!(record.resource, Some(made));
    let kept = shop.record().await.unwrap().response.unwrap();
    assert_eq!((kept.status, kept.headers.len(), kept.body), (201, 0, semel::Body::NotStored));
}

#[tokio::test(start_paused = true)]
async fn a_client_is_told_to_come_back_later_the_older_the_doubt_is_and_not_before_the_next_poll() {
    let hour = Duration::from_secs(3600);
    for (settling, seconds) in [
        (Settling::Operator, [2, 2, 30, 60]),
        (Settling::Webhook, [2, 2, 30, 60]),
        (Settling::Poll { first: Duration::from_secs(17) }, [17, 16, 30, 60]),
        (Settling::Poll { first: hour }, [60, 60, 60, 60]),
    ] {
        let shop = Shop::with(Policy { settling, ..Policy::default() });
        let ticket = shop.execute().await;
        shop.clock.advance(LEASE);
        for (seconds, passes) in seconds.into_iter().zip([1, 29, 3600, 0]) {
            let Decision::Unknown { retry_after, .. } = shop.decide().await else { panic!() };
            assert_eq!(retry_after.as_secs(), seconds, "{settling:?}");
            shop.clock.advance(Duration::from_secs(passes));
        }
        assert_eq!(shop.record().await.unwrap().dead_letter, settling == Settling::Operator);
        ticket.finish(completed("late")).await.unwrap();
        assert_eq!(shop.state().await, Some(State::Completed));
    }
}
