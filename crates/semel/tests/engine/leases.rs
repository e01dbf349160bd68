//! Signs of life, and what follows when they stop.

use crate::support::{LEASE, Shop, completed, replayed};
use semel::{Decision, Finish, Outcome, RightEnded, State};
use semel_testing::store::{Call, Fault};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_heartbeat_extends_the_lease_for_as_long_as_the_owner_is_at_work() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    for _ in 0..10 {
        shop.pass(LEASE / 2).await;
        assert!(matches!(shop.decide().await, Decision::InProgress { .. }));
    }
    let record = shop.record().await.unwrap();
    assert!(record.times.lease > shop.clock.now());
    assert_eq!(record.attempt, 1, "still the same ownership");
    ticket.finish(completed("once")).await.unwrap();
    assert_eq!(replayed(shop.decide().await), "once");
}

#[tokio::test(start_paused = true)]
async fn a_finished_operation_is_not_extended_any_more() {
    let shop = Shop::new();
    shop.execute().await.finish(completed("once")).await.unwrap();
    let (record, writes) = (shop.record().await, shop.store.batches(Call::Swap).len());
    shop.pass(LEASE * 3).await;
    assert_eq!(shop.record().await, record);
    assert_eq!(shop.store.batches(Call::Swap).len(), writes);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_outlives_a_store_that_is_away_for_a_while() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    shop.store.always(Call::Swap, Fault::Unavailable);
    shop.pass(LEASE / 2).await;
    shop.store.heal();
    shop.pass(LEASE * 2).await;
    assert!(matches!(shop.decide().await, Decision::InProgress { .. }));
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_back_before_the_lease_is_over_costs_nobody_the_lease() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let lease = |tenths: u32| LEASE * tenths / 10;
    shop.pass(lease(3)).await;
    // Away when the first sign of life is due, and when the second would be.
    shop.store.always(Call::Swap, Fault::Unavailable);
    shop.pass(lease(4)).await;
    shop.store.heal();
    shop.pass(lease(2)).await;
    let record = shop.record().await.unwrap();
    assert!(record.times.lease > shop.clock.now().plus(lease(1)), "extended before it was over");
    ticket.finish(completed("once")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_a_sign_of_life_the_outcome_is_unknown_and_the_owners_late_word_still_counts() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    // The owner's process lives, and its way to the store is cut.
    shop.store.always(Call::Swap, Fault::Unavailable);
    shop.pass(LEASE + Duration::from_secs(1)).await;
    let elsewhere = shop.elsewhere();
    assert!(matches!(elsewhere.decide().await, Decision::Unknown { .. }));
    assert!(matches!(elsewhere.decide().await, Decision::Unknown { .. }), "and it is not executed again");
    shop.store.heal();
    assert!(matches!(ticket.finish(completed("late")).await, Ok(Finish::Stored)));
    assert_eq!(replayed(elsewhere.decide().await), "late");
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_stops_once_it_is_refused() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    ticket.doubt("timeout").await;
    shop.pass(LEASE).await;
    let writes = shop.store.batches(Call::Swap).len();
    let record = shop.record().await.unwrap();
    shop.pass(LEASE * 3).await;
    assert_eq!(shop.store.batches(Call::Swap).len(), writes);
    assert_eq!(shop.record().await.unwrap(), record);
    assert_eq!(record.state, State::Unknown);
    ticket.finish(completed("late")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_goes_by_makes_no_write_of_the_owners_fail() {
    let shop = Shop::new();
    let mut ticket = shop.execute().await;
    for point in ["one", "two", "three"] {
        shop.pass(LEASE).await;
        ticket.advance(point, None).await.unwrap();
    }
    shop.pass(LEASE).await;
    assert!(matches!(ticket.finish(completed("once")).await, Ok(Finish::Stored)));
    assert_eq!(shop.record().await.unwrap().recovery_point.as_deref(), Some("three"));
}

#[tokio::test(start_paused = true)]
async fn the_right_to_execute_ends_when_a_sign_of_life_is_refused() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let right = ticket.right();
    let watching = tokio::spawn({
        let right = right.clone();
        async move { right.ended().await }
    });
    shop.pass(LEASE + Duration::from_secs(1)).await;
    assert_eq!(right.check(), Ok(()), "signs of life keep it");
    // As if this process had been suspended: the lease is over, and somebody finds out.
    shop.clock.advance(LEASE);
    assert!(matches!(shop.elsewhere().decide().await, Decision::Unknown { .. }));
    shop.pass(LEASE).await;
    assert_eq!(right.check(), Err(RightEnded::Fenced));
    assert_eq!(watching.await.unwrap(), RightEnded::Fenced);
    // What was under way still counts.
    assert!(matches!(ticket.finish(completed("late")).await, Ok(Finish::Stored)));
}

#[tokio::test(start_paused = true)]
async fn the_right_to_execute_ends_before_doubt_is_written_and_whenever_others_may_execute_next() {
    let shop = Shop::new();
    let ticket = shop.execute().await;
    let right = ticket.right();
    let doubting = ticket.doubt("timeout");
    assert_eq!(right.check(), Err(RightEnded::InDoubt));
    assert_eq!(shop.state().await, Some(State::InProgress), "nothing is written yet");
    doubting.await;
    assert_eq!(shop.state().await, Some(State::Unknown));
    drop(ticket);

    for (outcome, ended) in [
        (completed("once"), Ok(())),
        (Outcome::Failed { response: None, resource: None }, Ok(())),
        (Outcome::Released, Err(RightEnded::Released)),
        (Outcome::Retryable { error: "x".into() }, Err(RightEnded::Released)),
        (Outcome::Unknown { error: "x".into() }, Err(RightEnded::InDoubt)),
    ] {
        let shop = Shop::new();
        let ticket = shop.execute().await;
        let right = ticket.right();
        ticket.finish(outcome).await.unwrap();
        assert_eq!(right.check(), ended);
    }

    let shop = Shop::new();
    let ticket = shop.execute().await;
    let right = ticket.right();
    drop(ticket);
    assert_eq!(right.check(), Err(RightEnded::InDoubt), "at once, and not when it is written");
}
