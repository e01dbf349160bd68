//! A receiver that is not there.

use crate::receiver::{Does, Receiver};
use crate::subject::{Running, Subject, numbered};
use semel_events::outbox::EntryFilter;
use std::time::Duration;

pub(crate) async fn a_receiver_that_cannot_be_reached_costs_nothing_but_time(outbox: Subject) {
    const AGGREGATES: u32 = 30;
    let receiver = Receiver::that(|_| Does::IsUnreachable);
    for aggregate in 0..AGGREGATES {
        outbox.append(numbered(&format!("order/{aggregate}"), 0..3)).await;
    }
    let running = outbox.publish(receiver.sink());
    // Each of them, and some again and again.
    receiver.until_tried(60).await;
    let page = outbox.desk().list(EntryFilter::default(), None, 1000).await.unwrap();
    assert_eq!(page.entries.len(), 3 * AGGREGATES as usize);
    assert!(page.entries.iter().all(|entry| entry.attempts == 0 && !entry.parked && !entry.dead_letter));
    receiver.now(|_| Does::Confirms);
    receiver.until_confirmed(3 * AGGREGATES as usize).await;
    running.stop().await;
    for aggregate in 0..AGGREGATES {
        assert_eq!(receiver.first_times(&format!("order/{aggregate}")), [0, 1, 2]);
    }
    assert_eq!(outbox.left().await, 0);
}

pub(crate) async fn an_outage_is_counted_and_seen(outbox: Subject) {
    let receiver = Receiver::that(|_| Does::IsUnreachable);
    let publisher = outbox.publisher(receiver.sink());
    let counts = publisher.counts();
    outbox.append(numbered("payment/pay_1", 0..5)).await;
    let running = Running::start(publisher);
    receiver.until_tried(4).await;
    let stats = outbox.desk().stats().await.unwrap();
    assert_eq!((stats.backlog, stats.dead_letters), (5, 0));
    assert!(stats.oldest > Duration::ZERO, "{stats:?}");
    running.stop().await;
    assert_eq!((counts.published(), counts.failed()), (0, receiver.tries() as u64));
}
