//! Killed, or cut off from the store, at the worst moment.

use crate::receiver::Receiver;
use crate::subject::{Running, Subject, hasty, numbered};
use crate::through::Through;
use semel_events::outbox::{Publisher, PublisherOptions};
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) async fn what_was_published_and_not_settled_is_published_again(outbox: Subject) {
    let receiver = Receiver::new();
    outbox.append(numbered("payment/pay_1", 0..10)).await;
    let queue = Through { stuck: true, ..Through::to(outbox.queue()) };
    let mut settlings = queue.settlings.subscribe();
    // Dies soon in the eyes of the others.
    let options = PublisherOptions { lease: Duration::from_secs(1), ..hasty() };
    let first = Running::start(Publisher::new(queue, receiver.sink(), options));
    settlings.wait_for(|times| *times > 0).await.unwrap();
    first.kill().await;
    assert_eq!(receiver.first_times("payment/pay_1"), (0..10).collect::<Vec<_>>());
    assert_eq!(outbox.left().await, 10, "nobody knows it");
    let second = outbox.publish(receiver.sink());
    outbox.until_left(0).await;
    second.stop().await;
    assert_eq!(receiver.confirmed().len(), 20, "each of them twice");
    assert_eq!(receiver.ids().len(), 10, "under the same id");
}

pub(crate) async fn a_store_that_fails_between_publishing_and_settling_costs_no_second_delivery(
    outbox: Subject,
) {
    let receiver = Receiver::new();
    outbox.append(numbered("payment/pay_1", 0..10)).await;
    let queue = Through::to(outbox.queue());
    queue.lost.store(3, Ordering::SeqCst);
    let lost = queue.lost.clone();
    let mut settlings = queue.settlings.subscribe();
    let running = Running::start(Publisher::new(queue, receiver.sink(), hasty()));
    settlings.wait_for(|times| *times > 3).await.unwrap();
    outbox.append(numbered("payment/pay_1", 10..11)).await;
    receiver.until_confirmed(11).await;
    running.stop().await;
    assert_eq!(lost.load(Ordering::SeqCst), 0);
    assert_eq!(receiver.confirmed().len(), 11, "each of them once");
    assert_eq!(outbox.left().await, 0);
}
