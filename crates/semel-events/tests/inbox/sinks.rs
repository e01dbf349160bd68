//! What becomes of an event that a broker does not take.

use crate::broker::{TestStream, event, unique};
use bytes::Bytes;
use lapin::options::{BasicGetOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties};
use semel_events::message::Event;
use semel_events::sink::{NatsSink, RabbitMqSink, Sink, Undelivered};
use semel_testing::servers::Server;
use std::sync::Arc;

fn large(size: usize) -> Event {
    Event { payload: Bytes::from(vec![b'x'; size]), ..event("a", "") }
}

async fn refused(sink: &impl Sink, event: &Event) -> String {
    match sink.publish(event).await {
        Err(Undelivered::Refused(why)) => why,
        other => panic!("{other:?}"),
    }
}

async fn unreachable(sink: &impl Sink, event: &Event) -> String {
    match sink.publish(event).await {
        Err(Undelivered::Unreachable(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nats_refuses_what_is_wrong_with_an_event_and_nothing_else() {
    let small = |config: &mut async_nats::jetstream::stream::Config| config.max_message_size = 1000;
    let stream = TestStream::with(&Server::Nats.url(), small).await;
    let sink = stream.sink();
    sink.publish(&event("a", "fine")).await.unwrap();
    assert!(refused(&sink, &large(2000)).await.contains("too large"), "by the stream");
    assert!(refused(&sink, &large(2 << 20)).await.contains("too large"), "by the server");
    for kind in ["", "two words", "a..b", "*", "all.>"] {
        let why = refused(&sink, &Event { kind: kind.into(), ..event("a", "") }).await;
        assert!(why.contains("subject"), "{why}");
    }
    assert!(
        refused(&sink, &Event { aggregate: "a\nb".into(), ..event("a", "") }).await.contains("line break")
    );

    let nowhere = NatsSink::new(stream.context.clone(), unique("nowhere"));
    assert!(unreachable(&nowhere, &event("a", "")).await.contains("no stream has the subject"));
    let elsewhere = stream.sink().stream("another");
    assert!(unreachable(&elsewhere, &event("a", "")).await.contains(&stream.name));
    assert_eq!(stream.context.get_stream(&stream.name).await.unwrap().cached_info().state.messages, 1);
}

#[tokio::test]
async fn a_full_stream_is_no_fault_of_the_event() {
    let full = |config: &mut async_nats::jetstream::stream::Config| {
        config.max_messages = 1;
        config.discard = async_nats::jetstream::stream::DiscardPolicy::New;
    };
    let stream = TestStream::with(&Server::Nats.url(), full).await;
    stream.sink().publish(&event("a", "first")).await.unwrap();
    unreachable(&stream.sink(), &event("a", "second")).await;
}

#[tokio::test]
async fn nats_keeps_an_event_that_is_published_twice_once() {
    let stream = TestStream::new().await;
    let told = event("payment/pay_1", "pay_1");
    stream.publish(&[told.clone(), told]).await;
    assert_eq!(stream.context.get_stream(&stream.name).await.unwrap().cached_info().state.messages, 1);
}

/// A queue of the test's own, bound to an exchange of its own.
struct Bound {
    channel: Channel,
    exchange: String,
    queue: String,
}

async fn bound(kind: &str) -> Bound {
    let connection =
        Connection::connect(&Server::RabbitMq.url(), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let (exchange, queue) = (unique("payments"), unique("ledger"));
    // Makes the exchange.
    let sink = RabbitMqSink::new(Server::RabbitMq.url(), &exchange);
    refused(&sink, &event("a", "")).await;
    let declared = QueueDeclareOptions { auto_delete: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.as_str().into(), declared, FieldTable::default()).await.unwrap();
    let (bind, key) = (QueueBindOptions::default(), kind.into());
    let binding =
        channel.queue_bind(queue.as_str().into(), exchange.as_str().into(), key, bind, FieldTable::default());
    binding.await.unwrap();
    Bound { channel, exchange, queue }
}

#[tokio::test]
async fn rabbitmq_gets_an_event_with_all_that_is_to_be_known_about_it() {
    let Bound { channel, exchange, queue } = bound("PaymentCreated").await;
    let sink = RabbitMqSink::new(Server::RabbitMq.url(), &exchange);
    let told = event("payment/pay_1", "pay_1");
    sink.publish(&told).await.unwrap();
    let got =
        channel.basic_get(queue.as_str().into(), BasicGetOptions::default()).await.unwrap().unwrap().delivery;
    let properties = &got.properties;
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), told.id.to_string());
    assert_eq!(properties.kind().as_ref().unwrap().as_str(), "PaymentCreated");
    assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "application/json");
    assert_eq!(*properties.delivery_mode(), Some(2));
    let aggregate = properties.headers().as_ref().unwrap().inner().get("semel-aggregate").unwrap();
    assert_eq!(*aggregate, AMQPValue::LongString("payment/pay_1".into()));
    assert_eq!(got.data, b"pay_1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_events_at_once_those_that_no_queue_takes_are_refused_and_no_others() {
    let Bound { channel, exchange, queue } = bound("Wanted").await;
    let sink = Arc::new(RabbitMqSink::new(Server::RabbitMq.url(), &exchange));
    let events = (0..200).map(|number| Event {
        kind: if number % 2 == 0 { "Wanted".into() } else { "Unwanted".into() },
        ..event(&format!("payment/{number}"), "x")
    });
    let publishing: Vec<_> = events
        .map(|event| {
            let sink = Arc::clone(&sink);
            tokio::spawn(async move { (event.kind.clone(), sink.publish(&event).await) })
        })
        .collect();
    for one in publishing {
        match one.await.unwrap() {
            (kind, Ok(())) => assert_eq!(kind, "Wanted"),
            (kind, Err(Undelivered::Refused(why))) => {
                assert!(kind == "Unwanted" && why.contains("no queue"), "{why}")
            }
            (_, other) => panic!("{other:?}"),
        }
    }
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let queue = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await.unwrap();
    assert_eq!(queue.message_count(), 100);
}

#[tokio::test]
async fn rabbitmq_refuses_what_is_wrong_with_an_event_and_nothing_else() {
    let Bound { channel, exchange, .. } = bound("PaymentCreated").await;
    let url = Server::RabbitMq.url();
    let sink = RabbitMqSink::new(&url, &exchange);
    let why = refused(&sink, &Event { kind: "x".repeat(256), ..event("a", "") }).await;
    assert!(why.contains("255"), "{why}");
    assert!(refused(&sink, &large(129 << 20)).await.contains("too large"));
    sink.publish(&event("a", "after that")).await.unwrap();

    // An exchange that somebody took away: the connection is not to blame, and the next one is a new channel.
    channel.exchange_delete(exchange.as_str().into(), Default::default()).await.unwrap();
    assert!(unreachable(&sink, &event("a", "")).await.contains("no exchange"));

    let away = RabbitMqSink::new("amqp://127.0.0.1:1/%2f", "payments");
    unreachable(&away, &event("a", "")).await;
    assert!(!format!("{away:?}").contains("amqp"), "an address may hold a password");
}
