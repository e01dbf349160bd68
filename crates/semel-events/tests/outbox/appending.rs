//! Appending, and what cannot be.

use crate::receiver::Receiver;
use crate::subject::{Subject, numbered};
use semel_events::message::Event;

pub(crate) async fn what_is_rolled_back_is_never_published(outbox: Subject) {
    let receiver = Receiver::new();
    let error = outbox.try_append(numbered("payment/undone", 0..3), false).await.unwrap_err();
    assert_eq!(error, "rolled back");
    let running = outbox.publish(receiver.sink());
    outbox.append(numbered("payment/done", 0..1)).await;
    receiver.until_confirmed(1).await;
    running.stop().await;
    assert_eq!(receiver.confirmed().len(), 1);
    assert_eq!(receiver.first_times("payment/done"), [0]);
}

pub(crate) async fn an_event_that_no_broker_takes_is_refused(outbox: Subject) {
    let odd = Event::json("payment/pay_1", "payments.>", "{}");
    let error = outbox.try_append(vec![odd], true).await.unwrap_err();
    assert!(error.contains("subjects and routing keys"), "{error}");
    assert_eq!(outbox.left().await, 0);
}

pub(crate) async fn an_id_is_appended_once(outbox: Subject) {
    let events = numbered("payment/pay_1", 0..1);
    outbox.append(events.clone()).await;
    let error = outbox.try_append(events, true).await.unwrap_err();
    assert!(error.to_lowercase().contains("unique"), "{error}");
    assert_eq!(outbox.left().await, 1);
}
