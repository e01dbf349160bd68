//! Leases that run out.

use crate::interposed::Interposed;
use crate::support::{LEASE, Memory, Place, Shop, key, secs};
use semel::observe::Event;
use semel::{Decision, Outcome, Policy, RecordKey, Settling, Stale, State, StoreError};
use semel_conformance::{Loss, LossyStore};
use std::sync::Arc;

fn told_by_webhook() -> Policy {
    Policy { settling: Settling::Webhook, ..Policy::default() }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ran_out_becomes_unknown_without_a_request() {
    let shop = Shop::new(told_by_webhook()).await;
    let id = shop.abandoned(1).await;
    let mut watch = shop.watch();
    shop.pass(LEASE - secs(1));
    assert_eq!(watch.round().await.unwrap(), 0, "the lease still runs");
    assert_eq!(shop.state(id).await, State::InProgress);
    shop.pass(secs(1));
    assert_eq!(watch.round().await.unwrap(), 1);
    assert_eq!(shop.state(id).await, State::Unknown);
    assert_eq!(shop.happenings(id).await, ["doubted"]);
    assert_eq!((shop.counted.of(Event::ZombieKey), shop.counted.of(Event::ReconcileScheduled)), (1, 1));
    assert_eq!(watch.round().await.unwrap(), 0, "once");
    assert_eq!(shop.counted.of(Event::ZombieKey), 1);
}

#[tokio::test(start_paused = true)]
async fn where_nothing_settles_doubt_it_is_a_dead_letter_at_once() {
    let shop = Shop::new(Policy::default()).await;
    let id = shop.abandoned(1).await;
    shop.pass(LEASE);
    shop.watch().round().await.unwrap();
    assert!(shop.record(id).await.unwrap().dead_letter);
    assert_eq!((shop.counted.of(Event::ZombieKey), shop.counted.of(Event::ReconcileFailed)), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_fails_the_round_and_not_the_task() {
    let shop = Shop::new(told_by_webhook()).await;
    let id = shop.abandoned(1).await;
    shop.pass(LEASE);
    let mut watch = shop.watch();
    shop.store.be_broken(true);
    assert!(matches!(watch.round().await, Err(StoreError::Unavailable(_))), "reading changes nothing");
    shop.store.be_broken(false);
    assert_eq!(watch.round().await.unwrap(), 1);
    assert_eq!(shop.state(id).await, State::Unknown);
}

#[tokio::test(start_paused = true)]
async fn many_are_moved_on_in_bounded_batches() {
    let shop = Shop::new(told_by_webhook()).await;
    for number in 0..35 {
        shop.abandoned(number).await;
    }
    shop.pass(LEASE);
    assert_eq!(shop.watch().round().await.unwrap(), 35);
    assert_eq!(shop.store.swaps(), [10, 10, 10, 5]);
}

#[tokio::test(start_paused = true)]
async fn what_a_retry_resumes_is_passed_over_and_not_read_every_time() {
    let shop = Shop::new(Policy { stale: Stale::Resume, ..told_by_webhook() }).await;
    for number in 0..25 {
        shop.abandoned(number).await;
    }
    shop.pass(LEASE);
    let mut watch = shop.watch();
    assert_eq!(watch.round().await.unwrap(), 0);
    assert_eq!(shop.store.looked_at(), 25);
    assert_eq!(watch.round().await.unwrap(), 0);
    assert_eq!(shop.store.looked_at(), 25, "they are not read again");
    // Others are found all the same, and by and by everything is looked at again.
    shop.pass(secs(1));
    shop.abandoned(100).await;
    shop.pass(LEASE);
    watch.round().await.unwrap();
    assert_eq!(shop.store.looked_at(), 26);
    tokio::time::advance(secs(61)).await;
    watch.round().await.unwrap();
    assert_eq!(shop.store.looked_at(), 52);
    // A retry goes on with it.
    assert!(matches!(shop.request(1).await, Decision::Execute(ticket) if ticket.attempt() == 2));
}

#[tokio::test(start_paused = true)]
async fn operations_that_nobody_named_are_left_to_whoever_knows_them() {
    let shop = Shop::new(told_by_webhook()).await;
    let theirs = RecordKey::new("acme", "send_mail", "key-0000000000000001");
    let id = shop.abandoned_as(theirs).await;
    shop.pass(LEASE);
    assert_eq!(shop.watch().round().await.unwrap(), 0);
    assert_eq!(shop.state(id).await, State::InProgress);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_finishes_first_is_not_overwritten() {
    let place = Memory::new();
    let shop = Shop::at(&place, told_by_webhook()).await;
    let ticket = shop.execute(1).await;
    let id = ticket.operation_id();
    shop.pass(LEASE);
    // The watch has judged the record, and stands before its write.
    let gate = Arc::new(tokio::sync::Barrier::new(2));
    let watching = shop.elsewhere(Interposed::over(place.open().await).meeting(Arc::clone(&gate)));
    let mut watch = watching.watch();
    let (moved, ()) = tokio::join!(watch.round(), async {
        ticket.finish(Outcome::Completed { response: None, resource: None }).await.unwrap();
        gate.wait().await;
    });
    assert_eq!(moved.unwrap(), 0);
    assert_eq!(shop.state(id).await, State::Completed);
    assert!(shop.history(id).await.is_empty());
    assert_eq!(watching.counted.of(Event::ZombieKey), 0);
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_found_done_or_done_again() {
    for loss in [Loss::Answer, Loss::Call] {
        let place = Memory::new();
        let shop = Shop::at(&place, told_by_webhook()).await;
        let id = shop.abandoned(1).await;
        shop.pass(LEASE);
        let lossy = LossyStore::losing(place.open().await, [loss]);
        let mut watch = shop.elsewhere(Interposed::over(lossy)).watch();
        watch.round().await.unwrap_err();
        watch.round().await.unwrap();
        assert_eq!(shop.state(id).await, State::Unknown);
        assert_eq!(shop.happenings(id).await, ["doubted"], "{loss:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_first_leaves_the_watch_nothing_to_do() {
    let shop = Shop::new(told_by_webhook()).await;
    shop.abandoned(1).await;
    shop.pass(LEASE);
    assert!(matches!(shop.request(1).await, Decision::Unknown { .. }));
    assert_eq!(shop.watch().round().await.unwrap(), 0);
    assert_eq!(shop.counted.of(Event::ZombieKey), 1);
    assert!(shop.engine.store().read(&key(1)).await.is_ok());
}
