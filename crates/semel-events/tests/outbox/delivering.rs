//! Everything is delivered, in order, by however many.

use crate::receiver::{Does, Receiver};
use crate::subject::{Running, Subject, hasty, numbered};
use semel_events::outbox::{LANES, Publisher, PublisherOptions, Token};
use std::time::Duration;

pub(crate) async fn several_publishers_deliver_everything_in_order(outbox: Subject) {
    const AGGREGATES: u32 = 40;
    const EVENTS: u32 = 20;
    let receiver = Receiver::new();
    let publishers: Vec<_> = (0..3).map(|_| outbox.publish(receiver.sink())).collect();
    let appending: Vec<_> = (0..AGGREGATES)
        .map(|aggregate| {
            let outbox = outbox.clone();
            tokio::spawn(async move {
                let aggregate = format!("order/{aggregate}");
                for number in (0..EVENTS).step_by(2) {
                    outbox.append(numbered(&aggregate, number..number + 2)).await;
                }
            })
        })
        .collect();
    for appended in appending {
        appended.await.unwrap();
    }
    receiver.until_confirmed((AGGREGATES * EVENTS) as usize).await;
    for publisher in publishers {
        publisher.stop().await;
    }
    for aggregate in 0..AGGREGATES {
        let order = receiver.first_times(&format!("order/{aggregate}"));
        assert_eq!(order, (0..EVENTS).collect::<Vec<_>>(), "order/{aggregate}");
    }
    assert_eq!(outbox.left().await, 0);
}

pub(crate) async fn nothing_is_left_of_what_was_published(outbox: Subject) {
    let receiver = Receiver::new();
    let publisher = outbox.publisher(receiver.sink());
    let counts = publisher.counts();
    let running = Running::start(publisher);
    outbox.append(numbered("payment/pay_1", 0..100)).await;
    receiver.until_confirmed(100).await;
    outbox.until_left(0).await;
    running.stop().await;
    let stats = outbox.desk().stats().await.unwrap();
    assert_eq!((stats.backlog, stats.oldest, stats.dead_letters), (0, Duration::ZERO, 0));
    assert_eq!((counts.published(), counts.failed(), counts.dead_letters()), (100, 0, 0));
    assert_eq!(receiver.confirmed().len(), 100, "each of them once");
}

pub(crate) async fn whoever_stops_finishes_what_is_under_way_and_leaves_its_lanes(outbox: Subject) {
    let receiver = Receiver::that(|_| Does::Waits);
    // For an hour nobody else could take over, were the lanes not left.
    let options = PublisherOptions { lease: Duration::from_secs(3600), ..hasty() };
    let running = Running::start(Publisher::new(outbox.queue(), receiver.sink(), options));
    outbox.append(numbered("payment/pay_1", 0..3)).await;
    receiver.until_waiting(1).await;
    let stopping = tokio::spawn(running.stop());
    tokio::task::yield_now().await;
    receiver.release();
    stopping.await.unwrap();
    // At least the one that was under way; whether the next one was begun before the stop is a matter of luck.
    let confirmed = receiver.confirmed().len();
    assert!(confirmed >= 1);
    assert_eq!(outbox.left().await, 3 - confirmed, "what was confirmed is written down");
    let beat = outbox.queue().beat(Token::random(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(beat.lanes.len(), usize::from(LANES));
}

pub(crate) async fn an_application_can_wake_its_publisher(outbox: Subject) {
    let receiver = Receiver::new();
    let options = PublisherOptions { poll_every: Duration::from_secs(3600), ..hasty() };
    let publisher = Publisher::new(outbox.queue(), receiver.sink(), options);
    let wake = publisher.wake();
    outbox.append(numbered("payment/pay_1", 0..1)).await;
    let running = Running::start(publisher);
    receiver.until_confirmed(1).await;
    outbox.append(numbered("payment/pay_1", 1..2)).await;
    wake.wake();
    receiver.until_confirmed(2).await;
    running.stop().await;
}
