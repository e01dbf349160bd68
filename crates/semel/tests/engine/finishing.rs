//! An outcome is stored, or retried until it is: while the store is unavailable, after a panic, after the client has hung up.

use crate::support::{LEASE, STORE_TIMEOUT, Shop, completed, replayed};
use semel::{BeginError, Decision, Finish, Happening, Outcome, Policy, Stale, State, StoreError};
use semel_testing::store::{Call, Fault};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_means_that_nothing_is_executed() {
    for fault in [Fault::Unavailable, Fault::Hang, Fault::LostCall] {
        for call in [Call::Remember, Call::Create] {
            let shop = Shop::new();
            shop.store.always(call, fault.clone());
            shop.store.always(Call::Read, fault.clone());
            let begun = tokio::time::Instant::now();
            let refused = shop.begin().await;
            assert!(
                matches!(refused, Err(BeginError::Store(StoreError::Unavailable(_) | StoreError::Lost(_)))),
                "{refused:?}"
            );
            assert!(begun.elapsed() <= 2 * STORE_TIMEOUT + Duration::from_millis(10));
            assert_eq!(shop.state().await, None);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_the_store_does_not_take_is_an_error_in_time_and_stored_once_it_is_back() {
    for fault in [Fault::Unavailable, Fault::Hang, Fault::LostCall] {
        let shop = Shop::new();
        let ticket = shop.execute().await;
        shop.store.always(Call::Swap, fault);
        let begun = tokio::time::Instant::now();
        assert!(ticket.finish(completed("once")).await.is_err());
        assert!(begun.elapsed() <= STORE_TIMEOUT + Duration::from_millis(10));
        assert_eq!(shop.state().await, Some(State::InProgress));
        assert_eq!(shop.engine.in_flight(), 1, "it is yet to be written");

        tokio::time::sleep(Duration::from_secs(3600)).await;
        shop.store.heal();
        shop.engine.drained().await;
        assert_eq!(replayed(shop.decide().await), "once");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_that_comes_after_the_lease_still_counts() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let id = ticket.operation_id();
    shop.store.always(Call::Swap, Fault::Unavailable);
    assert!(ticket.finish(completed("late")).await.is_err());
    shop.clock.advance(LEASE);
    assert!(matches!(shop.elsewhere().decide().await, Decision::Unknown { .. }));
    shop.store.heal();
    shop.engine.drained().await;
    assert_eq!(replayed(shop.decide().await), "late");
    let told: Vec<_> = shop.history(id).await.into_iter().map(|line| line.entry.happening).collect();
    assert_eq!(told, [Happening::Doubted, Happening::FinishedLate]);
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_tried_on_until_it_is_fenced() {
    let shop = Shop::with(Policy { stale: Stale::Rerun, ..Policy::default() });
    let ticket = shop.execute().await;
    shop.store.always(Call::Swap, Fault::Unavailable);
    assert!(ticket.finish(completed("old")).await.is_err());
    shop.clock.advance(LEASE);
    let second = shop.elsewhere().execute().await;
    assert_eq!(shop.engine.in_flight(), 1);
    shop.store.heal();
    shop.engine.drained().await;
    assert_eq!(shop.state().await, Some(State::InProgress), "the old owner changed nothing");
    second.finish(completed("new")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "new");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_ticket_is_unknown_and_never_released() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let id = ticket.operation_id();
    drop(ticket);
    shop.engine.drained().await;
    assert_eq!(shop.state().await, Some(State::Unknown));
    assert!(matches!(shop.decide().await, Decision::Unknown { operation_id, .. } if operation_id == id));
    assert_eq!(shop.record().await.unwrap().last_error.as_deref(), Some("dropped_unfinished"));
}

#[tokio::test(start_paused = true)]
async fn a_panicking_owner_is_unknown() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let owner = tokio::spawn(async move {
        let _ticket = ticket;
        panic!("as told");
    });
    assert!(owner.await.unwrap_err().is_panic());
    shop.engine.drained().await;
    assert_eq!(shop.state().await, Some(State::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_ticket_that_is_dropped_while_the_store_is_away_is_unknown_once_it_is_back() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    shop.store.always(Call::Swap, Fault::Unavailable);
    drop(ticket);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(shop.state().await, Some(State::InProgress));
    shop.store.heal();
    shop.engine.drained().await;
    assert_eq!(shop.state().await, Some(State::Unknown));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_of_finishing_does_not_lose_the_outcome() {
    let shop = Shop::new();
    // Before it was polled at all,
    drop(shop.execute().await.finish(completed("never said")));
    shop.engine.drained().await;
    assert_eq!(shop.state().await, Some(State::Unknown), "nobody said anything yet");

    // and while the store is at it.
    let shop = Shop::new();
    let ticket = shop.execute().await;
    shop.store.next(Call::Swap, [Fault::Hang]);
    let finishing = tokio::spawn(ticket.finish(completed("once")));
    while shop.store.batches(Call::Swap).is_empty() {
        tokio::task::yield_now().await;
    }
    finishing.abort();
    assert!(finishing.await.unwrap_err().is_cancelled());
    shop.engine.drained().await;
    assert_eq!(replayed(shop.decide().await), "once");
}

#[tokio::test(start_paused = true)]
async fn doubt_that_is_said_without_giving_up_the_ticket_leaves_the_last_word_to_the_owner() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let id = ticket.operation_id();
    ticket.doubt("timeout").await;
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    assert!(matches!(ticket.finish(completed("late")).await, Ok(Finish::Stored)));
    assert_eq!(replayed(shop.decide().await), "late");
    let told: Vec<_> = shop.history(id).await.into_iter().map(|line| line.entry.happening).collect();
    assert_eq!(told, [Happening::Doubted, Happening::FinishedLate]);
}

#[tokio::test(start_paused = true)]
async fn drained_waits_for_every_ticket_and_for_nothing_else() {
    let shop = Shop::new();
    shop.engine.drained().await;
    let ticket = shop.execute().await;
    assert_eq!(shop.engine.in_flight(), 1);
    let mut drained = watched(shop.engine.drained());
    assert!(!drained.is_over().await);
    ticket.finish(Outcome::Released).await.unwrap();
    assert!(drained.is_over().await);
    assert_eq!(shop.engine.in_flight(), 0);
}

/// A future that is looked at now and then.
fn watched<F: Future<Output = ()>>(future: F) -> Watched<F> {
    Watched { future: Box::pin(future), over: false }
}

struct Watched<F> {
    future: std::pin::Pin<Box<F>>,
    over: bool,
}

impl<F: Future<Output = ()>> Watched<F> {
    async fn is_over(&mut self) -> bool {
        if !self.over {
            self.over = tokio::time::timeout(Duration::from_millis(1), &mut self.future).await.is_ok();
        }
        self.over
    }
}
