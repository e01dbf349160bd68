//! A lost acknowledgement is read back, never guessed.

use crate::support::{LEASE, STORE_TIMEOUT, Shop, completed, replayed, retryable};
use semel::{BeginError, Decision, Finish, Happening, Outcome, Policy, Stale, State, StoreError};
use semel_testing::store::{Call, Fault, Gate};
use std::time::Duration;

fn lost(begun: &Result<Decision, BeginError>) -> bool {
    matches!(begun, Err(BeginError::Store(StoreError::Lost(_))))
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_was_written_is_known_by_its_token_and_executes() {
    let shop = Shop::new();
    shop.store.next(Call::Create, [Fault::LostAnswer]);
    let ticket = shop.execute().await;
    assert_eq!(ticket.claim().owner, shop.record().await.unwrap().owner);
    assert!(matches!(shop.decide().await, Decision::InProgress { .. }), "nobody else executes meanwhile");
    ticket.finish(completed("once")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "once");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_was_not_written_does_not_execute_and_the_retry_does() {
    let shop = Shop::new();
    shop.store.next(Call::Create, [Fault::LostCall]);
    assert!(lost(&shop.begin().await));
    assert_eq!(shop.state().await, None);
    let ticket = shop.execute().await;
    assert_eq!(ticket.attempt(), 1);
    // The first one goes on looking for its reservation, and must not take this one for it.
    tokio::time::sleep(LEASE).await;
    assert_eq!(shop.state().await, Some(State::InProgress));
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_turns_up_late_is_given_back_so_that_the_retry_executes() {
    let shop = Shop::new();
    let gate = Gate::new();
    shop.store.next(Call::Create, [Fault::Late(gate.clone())]);
    assert!(lost(&shop.begin().await));
    // It was looked for once, in vain, before it turns up.
    tokio::time::sleep(Duration::from_millis(10)).await;
    gate.reached().await;
    assert_eq!(shop.state().await, None, "it is not there yet");
    gate.open();
    gate.reached().await;
    let orphan = shop.record().await.unwrap();
    assert!(matches!(shop.decide().await, Decision::InProgress { .. }), "it may be somebody's");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let ticket = shop.execute().await;
    assert_ne!(ticket.operation_id(), orphan.operation_id);
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_cannot_be_read_back_fails_closed_and_is_given_back_later() {
    let shop = Shop::new();
    shop.store.next(Call::Create, [Fault::LostAnswer]);
    shop.store.always(Call::Read, Fault::Hang);
    let begun = tokio::time::Instant::now();
    assert!(lost(&shop.begin().await));
    assert!(
        begun.elapsed() <= 2 * STORE_TIMEOUT + Duration::from_millis(10),
        "one call to write, one to read"
    );
    assert_eq!(shop.state().await, Some(State::InProgress), "an orphan");
    shop.store.heal();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(shop.state().await, None);
    assert_eq!(shop.execute().await.attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_loses_every_answer_is_asked_about_so_many_reservations_and_no_more() {
    const LOOKED_FOR: usize = 1024;
    let shop = Shop::new();
    shop.store.always(Call::Create, Fault::LostCall);
    let begun = LOOKED_FOR + 100;
    for _ in 0..begun {
        assert!(shop.begin().await.is_err());
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    let reads = || shop.store.batches(Call::Read).iter().sum::<usize>();
    assert_eq!(reads(), begun + LOOKED_FOR, "each is read back, and so many are looked for after that");
    // When their leases are over there is room again.
    shop.pass(LEASE * 2).await;
    let before = reads();
    assert!(shop.begin().await.is_err());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(reads(), before + 2);
}

#[tokio::test(start_paused = true)]
async fn somebody_elses_reservation_is_not_taken_for_ours() {
    let shop = Shop::new();
    let other = shop.execute().await;
    shop.store.next(Call::Create, [Fault::LostCall]);
    assert!(lost(&shop.begin().await));
    tokio::time::sleep(LEASE * 2).await;
    let record = shop.record().await.unwrap();
    assert_eq!(
        (record.owner, record.state),
        (other.claim().owner, State::InProgress),
        "it was not given back"
    );
    other.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_became_unknown_before_it_was_read_back_does_not_execute() {
    let shop = Shop::new();
    let gate = Gate::new();
    shop.store.next(Call::Create, [Fault::LostAnswer]);
    shop.store.next(Call::Read, [Fault::Held(gate.clone())]);
    let begun = {
        let shop = shop.clone();
        tokio::spawn(async move { shop.begin().await })
    };
    gate.reached().await;
    shop.clock.advance(LEASE);
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    gate.open();
    assert!(lost(&begun.await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_taken_retry_is_known_by_its_token() {
    for (fault, executes) in [(Fault::LostAnswer, true), (Fault::LostCall, false)] {
        let shop = Shop::new();
        let first = shop.execute().await;
        let id = first.operation_id();
        first.finish(retryable()).await.unwrap();
        shop.store.next(Call::Swap, [fault]);
        let ticket = if executes {
            shop.execute().await
        } else {
            assert!(lost(&shop.begin().await));
            shop.execute().await
        };
        assert_eq!((ticket.attempt(), ticket.operation_id()), (2, id));
        ticket.finish(completed("second")).await.unwrap();
        assert_eq!(replayed(shop.decide().await), "second");
    }
}

#[tokio::test(start_paused = true)]
async fn a_taken_retry_that_turns_up_late_goes_back_to_retryable() {
    let shop = Shop::new();
    shop.execute().await.finish(retryable()).await.unwrap();
    let gate = Gate::new();
    shop.store.next(Call::Swap, [Fault::Late(gate.clone())]);
    assert!(lost(&shop.begin().await));
    // It was looked for once, in vain, before it turns up.
    tokio::time::sleep(Duration::from_millis(10)).await;
    gate.reached().await;
    gate.open();
    gate.reached().await;
    assert_eq!(shop.state().await, Some(State::InProgress), "an orphan");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(shop.state().await, Some(State::FailedRetryable));
    assert_eq!(shop.execute().await.attempt(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_turns_up_late_is_left_to_the_end_of_its_lease() {
    // Nobody may call doubt retryable, not even whoever knows that its own attempt did nothing.
    let shop = Shop::with(Policy { stale: Stale::Resume, ..Policy::default() });
    let mut first = shop.execute().await;
    first.advance("charged", None).await.unwrap();
    shop.clock.advance(LEASE);
    let gate = Gate::new();
    shop.store.next(Call::Swap, [Fault::Late(gate.clone())]);
    assert!(lost(&shop.begin().await));
    // It was looked for once, in vain, before it turns up.
    tokio::time::sleep(Duration::from_millis(10)).await;
    gate.reached().await;
    gate.open();
    gate.reached().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let orphan = shop.record().await.unwrap();
    assert_eq!((orphan.state, orphan.attempt), (State::InProgress, 2));
    shop.clock.advance(LEASE);
    let third = shop.execute().await;
    assert_eq!((third.attempt(), third.recovery_point().unwrap().unwrap().0.as_str()), (3, "charged"));
    third.finish(completed("third")).await.unwrap();
    assert!(matches!(first.finish(completed("first")).await.unwrap(), Finish::Fenced(_)));
}

#[tokio::test(start_paused = true)]
async fn a_completion_whose_answer_is_lost_is_stored_once() {
    for fault in [Fault::LostAnswer, Fault::LostCall] {
        let shop = Shop::new();
        let ticket = shop.execute().await;
        let id = ticket.operation_id();
        shop.store.next(Call::Swap, [fault]);
        assert!(matches!(ticket.finish(completed("once")).await, Ok(Finish::Stored)));
        assert_eq!(replayed(shop.decide().await), "once");
        assert!(shop.history(id).await.is_empty(), "a plain happy path");
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_answer_is_lost_is_done_once_even_if_somebody_else_executes_by_then() {
    for somebody_else in [false, true] {
        let shop = Shop::new();
        let ticket = shop.execute().await;
        let gate = Gate::new();
        // Long enough for the answer to be lost, short enough for the owner to ask again.
        shop.store.next(Call::Remove, [Fault::LostAnswer, Fault::Held(gate.clone())]);
        let released = tokio::spawn(ticket.finish(Outcome::Released));
        gate.reached().await;
        let other = if somebody_else { Some(shop.execute().await) } else { None };
        gate.open();
        assert!(matches!(released.await.unwrap(), Ok(Finish::Stored)));
        assert_eq!(shop.state().await, other.as_ref().map(|_| State::InProgress));
    }
}

#[tokio::test(start_paused = true)]
async fn a_recovery_point_whose_answer_is_lost_is_committed() {
    for fault in [Fault::LostAnswer, Fault::LostCall] {
        let shop = Shop::new();
        let mut ticket = shop.execute().await;
        shop.store.next(Call::Swap, [fault]);
        ticket.advance("charged", None).await.unwrap();
        assert_eq!(shop.record().await.unwrap().recovery_point.as_deref(), Some("charged"));
        ticket.finish(completed("once")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn doubt_whose_answer_is_lost_is_decided_again() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let id = ticket.operation_id();
    shop.clock.advance(LEASE);
    shop.store.next(Call::Swap, [Fault::LostAnswer]);
    assert!(lost(&shop.begin().await));
    assert!(matches!(shop.decide().await, Decision::Unknown { .. }));
    let history = shop.history(id).await;
    assert_eq!(history.len(), 1);
    assert_eq!(history[0].entry.happening, Happening::Doubted);
    ticket.finish(completed("late")).await.unwrap();
}
