//! Through JetStream, from the sink to the ledger.

use crate::broker::{Running, TestStream, event, hasty, until};
use crate::ledger::{Ledger, enter_delivery};
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::{AckKind, message::PublishMessage, stream::RetentionPolicy};
use semel_conformance::kill::Dice;
use semel_events::consumer::{ConsumerOptions, Delivery, Failure};
use semel_events::message::Event;
use semel_events::sink::{Sink as _, Undelivered};
use semel_testing::servers::{Nats, Server};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt as _;

/// Puts a message into the stream however often it was there before: the server forgets ids after a tenth of a second.
async fn publish_again(stream: &TestStream, event: &Event) {
    until("an id that the server has forgotten", async || {
        let message = PublishMessage::build()
            .message_id(event.id.to_string())
            .header("Semel-Aggregate", event.aggregate.as_str())
            .header("Semel-Kind", event.kind.as_str())
            .payload(event.payload.clone());
        let subject = format!("{}.{}", stream.name, event.kind);
        let kept = stream.context.send_publish(subject, message).await.unwrap().await.unwrap();
        (!kept.duplicate).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_three_times_and_shuffled_is_entered_once() {
    const PAYMENTS: usize = 100;
    let ledger = Ledger::new().await;
    let url = Server::Nats.url();
    let stream = TestStream::with(&url, |config| config.duplicate_window = Duration::from_millis(100)).await;
    let events: Vec<_> = (0..PAYMENTS)
        .map(|number| event(&format!("payment/{}", number % 7), &format!("pay_{number}")))
        .collect();
    stream.publish(&events).await;
    let mut dice = Dice::seeded(7);
    for _ in 0..PAYMENTS * 2 {
        let number = usize::try_from(dice.below(PAYMENTS as u64)).unwrap();
        publish_again(&stream, &events[number]).await;
    }
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::nats(stream.consumer(), bookkeeper);
    for _ in 0..PAYMENTS * 3 {
        told.recv().await.unwrap();
    }
    stream.until_all_acknowledged().await;
    running.stop().await;
    let entries = ledger.entries().await;
    assert_eq!(entries.len(), PAYMENTS);
    assert!(entries.values().all(|times| *times == 1), "{entries:?}");
}

#[tokio::test]
async fn a_message_arrives_as_the_event_that_was_told() {
    let stream = TestStream::new().await;
    let told = event("payment/pay_1", "pay_1");
    stream.publish(std::slice::from_ref(&told)).await;
    stream
        .context
        .publish(format!("{}.raw", stream.name), "by somebody else".into())
        .await
        .unwrap()
        .await
        .unwrap();
    let (tell, mut arrived) = mpsc::unbounded_channel();
    let handler = move |delivery: Delivery| {
        let sent = tell.send(delivery);
        async move { sent.map_err(|_| Failure::NotNow("nobody listens".into())) }
    };
    let running = Running::nats(stream.consumer(), handler);
    let first = arrived.recv().await.unwrap();
    assert_eq!(first.id, told.id.into());
    assert_eq!(
        (first.aggregate, first.kind, first.content_type),
        (told.aggregate, told.kind, told.content_type)
    );
    assert_eq!(first.payload, told.payload);
    let second = arrived.recv().await.unwrap();
    assert!(
        second.id.as_str().starts_with(&format!("{}:2:", stream.name)),
        "its place in the stream: {}",
        second.id
    );
    assert_eq!(second.aggregate, format!("{}.raw", stream.name));
    running.stop().await;
}

#[tokio::test]
async fn a_consumer_that_dies_between_commit_and_acknowledgement_has_had_the_effect() {
    let ledger = Ledger::new().await;
    let stream = TestStream::new().await;
    stream.publish(&[event("payment/pay_1", "pay_1")]).await;
    let consumer = || stream.consumer().ack_wait(Duration::from_secs(1));

    let (committed, mut reached) = mpsc::unbounded_channel();
    let inbox = ledger.inbox.clone();
    let dying = Running::nats(consumer(), move |delivery: Delivery| {
        let (inbox, committed) = (inbox.clone(), committed.clone());
        async move {
            enter_delivery(&inbox, &delivery).await?;
            committed.send(()).unwrap();
            std::future::pending().await
        }
    });
    reached.recv().await.unwrap();
    dying.kill().await;
    assert_eq!(
        (ledger.lines().await.len(), stream.open().await),
        (1, Some((0, 1))),
        "entered, not acknowledged"
    );

    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::nats(consumer(), bookkeeper);
    told.recv().await.unwrap();
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(ledger.lines().await, ["pay_1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing_and_repeats_nothing() {
    const PAYMENTS: usize = 60;
    let ledger = Ledger::new().await;
    let mut server = Nats::start().unwrap();
    let stream = TestStream::with(&server.url(), |_| ()).await;
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let consumer = stream.consumer().ack_wait(Duration::from_secs(1));
    let running = Running::nats(consumer, bookkeeper);
    let sink = stream.sink();
    for number in 0..PAYMENTS {
        if number == PAYMENTS / 2 {
            // Some have been handled by now, and some not.
            told.recv().await.unwrap();
            server.kill().unwrap();
            let unreachable = until("the server is down", async || {
                sink.publish(&event("payment/lost", "lost")).await.err()
            });
            let unreachable = unreachable.await;
            assert!(matches!(unreachable, Undelivered::Unreachable(_)), "{unreachable:?}");
            server.start_again().unwrap();
        }
        let event = event(&format!("payment/{}", number % 5), &format!("pay_{number}"));
        until("a server that takes it", async || sink.publish(&event).await.ok()).await;
    }
    let complete = async || {
        let entries = ledger.entries().await;
        let payments = entries.keys().filter(|name| *name != "lost").count();
        (payments == PAYMENTS).then_some(entries)
    };
    let entries = until("the last payment", complete).await;
    assert!(entries.values().all(|times| *times == 1), "{entries:?}");
    stream.until_all_acknowledged().await;
    // While there is no server, it can still be stopped.
    server.kill().unwrap();
    running.stop().await;
}

/// Which aggregate's messages were handled in which order.
#[derive(Clone, Default)]
struct Order(Arc<std::sync::Mutex<Vec<String>>>);

impl Order {
    fn of(&self, aggregate: &str) -> Vec<String> {
        let seen = self.0.lock().unwrap();
        seen.iter().filter(|payment| payment.starts_with(aggregate)).cloned().collect()
    }

    fn add(&self, delivery: &Delivery) -> usize {
        let payment = String::from_utf8(delivery.payload.to_vec()).unwrap();
        let mut seen = self.0.lock().unwrap();
        seen.push(payment.clone());
        seen.iter().filter(|other| **other == payment).count()
    }
}

#[tokio::test]
async fn messages_of_an_aggregate_come_in_order_also_behind_one_that_fails() {
    let stream = TestStream::new().await;
    let names = ["a1", "b1", "a2", "b2", "a3", "b3"];
    let events: Vec<_> = names.iter().map(|name| event(&name[..1], name)).collect();
    stream.publish(&events).await;
    let order = Order::default();
    let handler = {
        let order = order.clone();
        move |delivery: Delivery| {
            let times = order.add(&delivery);
            let fails = delivery.payload == "a1" && times < 3;
            async move { if fails { Err(Failure::Failed("not yet".into())) } else { Ok(()) } }
        }
    };
    let running = Running::nats(stream.consumer(), handler);
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(order.of("a"), ["a1", "a1", "a1", "a2", "a3"]);
    assert_eq!(order.of("b"), ["b1", "b2", "b3"]);
}

#[tokio::test]
async fn a_poison_message_is_set_aside_and_holds_nobody_up() {
    let ledger = Ledger::new().await;
    let stream = TestStream::new().await;
    let dead = TestStream::new().await;
    let events =
        [event("a", "poison"), event("a", "a2"), event("b", "b1"), event("c", "panic"), event("c", "c2")];
    // A sink that names its stream says so in every message, and what is set aside goes into another one.
    let sink = stream.sink().stream(&stream.name);
    for event in &events {
        sink.publish(event).await.unwrap();
    }
    let order = Order::default();
    let handler = {
        let (order, inbox) = (order.clone(), ledger.inbox.clone());
        move |delivery: Delivery| {
            order.add(&delivery);
            let inbox = inbox.clone();
            async move {
                match &*delivery.payload {
                    b"poison" => Err(Failure::Failed("it does not\nagree with us".into())),
                    b"panic" => panic!("a mistake of the handler's"),
                    _ => enter_delivery(&inbox, &delivery).await,
                }
            }
        }
    };
    let options = ConsumerOptions { tries: 3, ..hasty() };
    let consumer = stream.consumer().options(options).dead_letters(format!("{}.dead", dead.name));
    let running = Running::nats(consumer, handler);
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!((order.of("poison").len(), order.of("panic").len()), (3, 3));
    assert_eq!(ledger.entries().await, ["a2", "b1", "c2"].map(|name| (name.to_owned(), 1)).into());

    let letters = dead.context.get_stream(&dead.name).await.unwrap();
    let mut reasons = BTreeMap::new();
    for number in [1, 2] {
        let letter = letters.get_raw_message(number).await.unwrap();
        let header = |name: &str| letter.headers.get(name).unwrap().to_string();
        assert_eq!(header("Semel-Dead-Subject"), format!("{}.PaymentCreated", stream.name));
        assert_eq!(header("Semel-Kind"), "PaymentCreated");
        reasons.insert(letter.payload.clone(), header("Semel-Dead-Reason"));
    }
    assert_eq!(reasons[&b"poison"[..]], "it does not agree with us");
    assert!(reasons[&b"panic"[..]].contains("panicked"));
}

#[tokio::test]
async fn what_was_set_aside_and_is_published_again_is_the_same_message() {
    let ledger = Ledger::new().await;
    let (stream, dead) = (TestStream::new().await, TestStream::new().await);
    let payment = event("payment/pay_1", "pay_1");
    stream.publish(std::slice::from_ref(&payment)).await;
    // Its effect is there, and still it is set aside: by a handler that knows no better.
    let inbox = ledger.inbox.clone();
    let consumer = || stream.consumer().dead_letters(format!("{}.dead", dead.name));
    let refusing = Running::nats(consumer(), move |delivery: Delivery| {
        let inbox = inbox.clone();
        async move {
            enter_delivery(&inbox, &delivery).await?;
            Err(Failure::Refused("entered, and yet".into()))
        }
    });
    stream.until_all_acknowledged().await;
    refusing.stop().await;

    let letters = dead.context.get_stream(&dead.name).await.unwrap();
    let letter = letters.get_raw_message(1).await.unwrap();
    let subject = letter.headers.get("Semel-Dead-Subject").unwrap().to_string();
    let again = PublishMessage::build().headers(letter.headers).payload(letter.payload);
    stream.context.send_publish(subject, again).await.unwrap().await.unwrap();
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::nats(consumer(), bookkeeper);
    assert_eq!(told.recv().await.unwrap().id, payment.id.into());
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(ledger.lines().await, ["pay_1"], "entered once");
}

#[tokio::test]
async fn what_can_never_succeed_is_set_aside_at_once_and_stays_in_its_stream() {
    let stream = TestStream::new().await;
    stream.publish(&[event("a", "nonsense")]).await;
    let order = Order::default();
    let handler = {
        let order = order.clone();
        move |delivery: Delivery| {
            order.add(&delivery);
            async { Err(Failure::Refused("it makes no sense".into())) }
        }
    };
    let running = Running::nats(stream.consumer(), handler);
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(order.of("nonsense").len(), 1);
    let kept = stream.context.get_stream(&stream.name).await.unwrap().get_raw_message(1).await.unwrap();
    assert_eq!(kept.payload, "nonsense");
}

#[tokio::test]
async fn a_handler_that_hangs_has_failed_and_is_tried_again() {
    let stream = TestStream::new().await;
    stream.publish(&[event("a", "hangs")]).await;
    let order = Order::default();
    let handler = {
        let order = order.clone();
        move |delivery: Delivery| {
            let times = order.add(&delivery);
            async move { if times < 2 { std::future::pending().await } else { Ok(()) } }
        }
    };
    let options = ConsumerOptions { time_limit: Duration::from_millis(100), ..hasty() };
    let running = Running::nats(stream.consumer().options(options), handler);
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(order.of("hangs").len(), 2);
}

#[tokio::test]
async fn what_cannot_be_done_now_is_tried_on_and_counts_as_no_failure() {
    let stream = TestStream::new().await;
    stream.publish(&[event("a", "later")]).await;
    let order = Order::default();
    let handler = {
        let order = order.clone();
        move |delivery: Delivery| {
            let times = order.add(&delivery);
            async move { if times < 9 { Err(Failure::NotNow("the store is unavailable".into())) } else { Ok(()) } }
        }
    };
    let options = ConsumerOptions { tries: 2, ..hasty() };
    let running = Running::nats(stream.consumer().options(options), handler);
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(order.of("later").len(), 9);
}

#[tokio::test]
async fn a_message_that_killed_its_consumer_too_often_is_set_aside_untried() {
    let stream = TestStream::new().await;
    stream.publish(&[event("a", "killer")]).await;
    let options = ConsumerOptions { deliveries: 2, ..hasty() };
    let consumer = || stream.consumer().options(options).ack_wait(Duration::from_secs(2));
    let order = Order::default();
    let (tell, mut tried) = mpsc::unbounded_channel();
    let handler = {
        let order = order.clone();
        move |delivery: Delivery| {
            order.add(&delivery);
            tell.send(()).unwrap();
            std::future::pending::<Result<(), Failure>>()
        }
    };
    for _ in 0..2 {
        let running = Running::nats(consumer(), handler.clone());
        tried.recv().await.unwrap();
        running.kill().await;
    }
    let running = Running::nats(consumer(), handler);
    stream.until_all_acknowledged().await;
    running.kill().await;
    assert_eq!(order.of("killer").len(), 2);
}

#[tokio::test]
async fn work_that_takes_longer_than_the_server_waits_is_not_delivered_again() {
    let stream = TestStream::new().await;
    stream.publish(&[event("a", "a1"), event("a", "a2")]).await;
    let order = Order::default();
    let ack_wait = Duration::from_millis(1500);
    let handler = {
        let order = order.clone();
        move |delivery: Delivery| {
            order.add(&delivery);
            // The server delivers again, if it does, at the end of its wait.
            async move {
                tokio::time::sleep(ack_wait * 2).await;
                Ok(())
            }
        }
    };
    let running = Running::nats(stream.consumer().ack_wait(ack_wait), handler);
    stream.until_all_acknowledged().await;
    running.stop().await;
    assert_eq!(order.of("a"), ["a1", "a2"]);
}

#[tokio::test]
async fn stopping_finishes_what_runs_and_gives_the_rest_back() {
    let stream = TestStream::new().await;
    stream.publish(&[event("a", "a1"), event("a", "a2"), event("b", "b1")]).await;
    let (order, go_on) = (Order::default(), Arc::new(Notify::new()));
    let (tell, mut running_now) = mpsc::unbounded_channel();
    let handler = {
        let (order, go_on) = (order.clone(), Arc::clone(&go_on));
        move |delivery: Delivery| {
            order.add(&delivery);
            tell.send(()).unwrap();
            let go_on = Arc::clone(&go_on);
            async move {
                if delivery.payload == "a1" {
                    go_on.notified().await;
                }
                Ok(())
            }
        }
    };
    let running = Running::nats(stream.consumer(), handler.clone());
    running_now.recv().await.unwrap();
    running_now.recv().await.unwrap();
    until("that a2 is here", async || stream.open().await.filter(|open| open.0 == 0)).await;
    let stopping = tokio::spawn(running.stop());
    let durable = stream.context.get_stream(&stream.name).await.unwrap();
    let durable = durable.get_consumer::<pull::Config>("ledger").await.unwrap();
    let mut given_back =
        durable.batch().max_messages(1).expires(Duration::from_secs(20)).messages().await.unwrap();
    let second = given_back.next().await.unwrap().unwrap();
    assert_eq!(second.payload, "a2", "it did not wait for a1 to end");
    second.ack_with(AckKind::Nak(None)).await.unwrap();
    go_on.notify_one();
    stopping.await.unwrap();
    assert_eq!(stream.open().await.unwrap().1, 1, "a1 and b1 are acknowledged");
    assert_eq!(order.of("a"), ["a1"]);

    // Long before the server would have waited in vain.
    let running = Running::nats(stream.consumer(), handler);
    tokio::time::timeout(Duration::from_secs(20), stream.until_all_acknowledged()).await.unwrap();
    running.stop().await;
    assert_eq!((order.of("a"), order.of("b")), (vec!["a1".into(), "a2".into()], vec!["b1".into()]));
}

#[tokio::test]
async fn a_consumer_waits_for_a_stream_that_is_not_there_yet() {
    let ledger = Ledger::new().await;
    let other = TestStream::new().await;
    let stream = TestStream { context: other.context.clone(), name: crate::broker::unique("later") };
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::nats(stream.consumer(), bookkeeper);
    let config = async_nats::jetstream::stream::Config {
        name: stream.name.clone(),
        subjects: vec![format!("{}.>", stream.name)],
        ..Default::default()
    };
    stream.context.create_stream(config).await.unwrap();
    stream.publish(&[event("a", "a1")]).await;
    told.recv().await.unwrap();
    // A consumer that was deleted is created again, and the messages that it delivers again are known.
    stream.context.get_stream(&stream.name).await.unwrap().delete_consumer("ledger").await.unwrap();
    told.recv().await.unwrap();
    running.stop().await;
    assert_eq!(ledger.lines().await, ["a1"]);
}

#[tokio::test]
async fn what_would_lose_messages_is_refused() {
    let handler = |_: Delivery| async { Ok(()) };
    let url = Server::Nats.url();
    let queue = TestStream::with(&url, |config| config.retention = RetentionPolicy::WorkQueue).await;
    let refused = queue.consumer().run(handler, std::future::pending()).await.unwrap_err();
    assert!(refused.to_string().contains("dead letters"), "{refused}");

    for (change, trouble) in [
        (pull::Config { ack_policy: AckPolicy::All, ..Default::default() }, "ack_policy"),
        (pull::Config { max_deliver: 3, ..Default::default() }, "max_deliver"),
    ] {
        let stream = TestStream::new().await;
        let config = pull::Config { durable_name: Some("ledger".into()), ..change };
        stream.context.get_stream(&stream.name).await.unwrap().create_consumer(config).await.unwrap();
        let refused = stream.consumer().run(handler, std::future::pending()).await.unwrap_err();
        assert!(refused.to_string().contains(trouble), "{refused}");
    }
}
