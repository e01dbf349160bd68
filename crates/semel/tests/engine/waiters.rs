//! A bounded wait for another request's answer.

use crate::support::{LEASE, Shop, answer, command, completed, key, replayed, retryable, waiting};
use semel::{Decision, EngineOptions, Expired, Outcome, Policy, RecordKey, Stale, State};
use semel_testing::store::{Call, Fault, Gate};
use std::time::Duration;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(5);

/// A request that waits, and has begun to.
async fn waiter(shop: &Shop) -> JoinHandle<Decision> {
    let looks = shop.store.batches(Call::Read).len();
    let waiting = {
        let shop = shop.clone();
        tokio::spawn(async move { shop.decide().await })
    };
    while shop.store.batches(Call::Read).len() == looks {
        assert!(!waiting.is_finished());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    waiting
}

#[tokio::test(start_paused = true)]
async fn waiters_get_the_first_ones_answer() {
    for outcome in [completed("once"), Outcome::Failed { response: Some(answer("once")), resource: None }] {
        let shop = Shop::with(waiting(PATIENCE));
        let ticket = shop.execute().await;
        let mut waiters = Vec::new();
        for _ in 0..20 {
            waiters.push(waiter(&shop).await);
        }
        ticket.finish(outcome).await.unwrap();
        for waiter in waiters {
            assert_eq!(replayed(waiter.await.unwrap()), "once");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_waits_no_longer_than_its_patience() {
    let shop = Shop::with(waiting(PATIENCE));
    let ticket = shop.execute().await;
    let begun = Instant::now();
    let id = ticket.operation_id();
    let decision = shop.decide().await;
    assert!(matches!(decision, Decision::InProgress { operation_id: Some(found), .. } if found == id));
    assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < PATIENCE + Duration::from_millis(50));
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_finds_another_requests_record_whose_window_is_over_is_not_told_of_that_one() {
    let shop = Shop::with(Policy { expired: Expired::New, ..waiting(PATIENCE) });
    let first = shop.execute().await;
    let waiter = waiter(&shop).await;
    let gate = Gate::new();
    shop.store.next(Call::Read, [Fault::Held(gate.clone())]);
    gate.reached().await;
    first.finish(Outcome::Released).await.unwrap();
    let Decision::Execute(other) = shop.ask(&command("99.00")).await.unwrap() else { panic!() };
    other.finish(completed("another")).await.unwrap();
    shop.clock.advance(Policy::default().retention);
    gate.open();
    let decision = waiter.await.unwrap();
    assert!(matches!(decision, Decision::InProgress { operation_id: None, .. }), "{decision:?}");
}

#[tokio::test(start_paused = true)]
async fn waiters_are_bounded_in_number_and_those_past_it_are_answered_at_once() {
    let shop = Shop::limited(waiting(PATIENCE), 3);
    let ticket = shop.execute().await;
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(waiter(&shop).await);
    }
    let begun = Instant::now();
    assert!(matches!(shop.decide().await, Decision::InProgress { .. }));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    ticket.finish(completed("once")).await.unwrap();
    for waiter in waiters {
        assert_eq!(replayed(waiter.await.unwrap()), "once");
    }
    let next = shop.decide().await;
    assert_eq!(replayed(next), "once", "their places are free again");
}

#[tokio::test(start_paused = true)]
async fn the_waiters_of_one_tenant_leave_places_for_others() {
    let options = EngineOptions { max_waiters: 3, max_waiters_per_tenant: 2, ..EngineOptions::default() };
    let shop = Shop::built(waiting(PATIENCE), options);
    let ticket = shop.execute().await;
    let _waiters = [waiter(&shop).await, waiter(&shop).await];
    let begun = Instant::now();
    assert!(matches!(shop.decide().await, Decision::InProgress { .. }));
    assert_eq!(begun.elapsed(), Duration::ZERO, "its tenant has as many as it may");
    let others = RecordKey::new("other", key().operation, key().key);
    let _executes = shop.ask_under(others.clone(), &command("10.00")).await.unwrap();
    shop.ask_under(others, &command("10.00")).await.unwrap();
    assert!(begun.elapsed() >= PATIENCE, "another tenant's waited");
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_never_becomes_an_owner() {
    // Whatever lets the next request execute, a waiter is told at once to ask again.
    let endings = [Outcome::Released, retryable()];
    for outcome in endings {
        let shop = Shop::with(waiting(PATIENCE));
        let ticket = shop.execute().await;
        let waiter = waiter(&shop).await;
        ticket.finish(outcome).await.unwrap();
        let begun = Instant::now();
        assert!(matches!(waiter.await.unwrap(), Decision::InProgress { .. }));
        assert!(begun.elapsed() < Duration::from_secs(1), "it will not end by waiting");
        shop.execute().await.finish(completed("by the one who asked again")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_owner_died_is_told_unknown_or_to_ask_again() {
    for (stale, unknown) in [(Stale::Unknown, true), (Stale::Resume, false)] {
        let shop = Shop::with(Policy { stale, ..waiting(LEASE * 2) });
        let ticket = shop.execute().await;
        let waiter = waiter(&shop).await;
        shop.clock.advance(LEASE);
        let decision = waiter.await.unwrap();
        assert_eq!(matches!(decision, Decision::Unknown { .. }), unknown, "{decision:?}");
        assert_eq!(matches!(decision, Decision::InProgress { .. }), !unknown, "{decision:?}");
        let record = shop.record().await.unwrap();
        assert_eq!((record.state, record.attempt), (State::InProgress, 1), "waiters write nothing");
        ticket.finish(completed("late")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_is_told_of_doubt_as_soon_as_it_arises() {
    let shop = Shop::with(waiting(PATIENCE));
    let ticket = shop.execute().await;
    let waiter = waiter(&shop).await;
    ticket.finish(Outcome::Unknown { error: "timeout".into() }).await.unwrap();
    assert!(matches!(waiter.await.unwrap(), Decision::Unknown { .. }));
}

#[tokio::test(start_paused = true)]
async fn looks_of_many_waiters_share_their_calls() {
    let shop = Shop::with(waiting(PATIENCE));
    let ticket = shop.execute().await;
    let mut waiters = JoinSet::new();
    for _ in 0..200 {
        let shop = shop.clone();
        waiters.spawn(async move { shop.decide().await });
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    ticket.finish(completed("once")).await.unwrap();
    while let Some(decision) = waiters.join_next().await {
        assert_eq!(replayed(decision.unwrap()), "once");
    }
    let looks = shop.store.batches(Call::Read);
    assert!(
        looks.iter().sum::<usize>() >= 10 * looks.len(),
        "{} reads for {} calls",
        looks.iter().sum::<usize>(),
        looks.len()
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_without_an_end_to_its_patience_gets_the_answer() {
    let shop = Shop::with(waiting(Duration::MAX));
    let ticket = shop.execute().await;
    let waiter = waiter(&shop).await;
    ticket.finish(completed("once")).await.unwrap();
    assert_eq!(replayed(waiter.await.unwrap()), "once");
}
