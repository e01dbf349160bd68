//! Through RabbitMQ, from the sink to the ledger.

use crate::broker::{Running, event, hasty, unique, until};
use crate::ledger::{Ledger, enter_delivery};
use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use semel_conformance::kill::Dice;
use semel_events::consumer::{ConsumerOptions, Delivery, Failure, RabbitMqConsumer};
use semel_events::sink::{RabbitMqSink, Sink as _, Undelivered};
use semel_testing::servers::{RabbitMq, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// An exchange and a queue of the test's own.
struct Queue {
    url: String,
    exchange: String,
    name: String,
    channel: Channel,
}

impl Queue {
    /// Made, and bound to its exchange.
    async fn new() -> Self {
        Self::at(Server::RabbitMq.url()).await
    }

    async fn at(url: String) -> Self {
        let connection = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
        let channel = connection.create_channel().await.unwrap();
        let queue = Self { url, exchange: unique("payments"), name: unique("ledger"), channel };
        // A consumer that comes and goes makes them.
        let (tell, mut told) = mpsc::unbounded_channel();
        let running = Running::rabbitmq(queue.consumer(), move |_: Delivery| {
            tell.send(()).unwrap();
            async { Ok(()) }
        });
        until("the binding", async || queue.sink().publish(&event("a", "the first")).await.ok()).await;
        told.recv().await.unwrap();
        running.stop().await;
        queue
    }

    fn sink(&self) -> RabbitMqSink {
        RabbitMqSink::new(&self.url, &self.exchange)
    }

    fn consumer(&self) -> RabbitMqConsumer {
        RabbitMqConsumer::new(&self.url, &self.name)
            .bound_to(&self.exchange, "PaymentCreated")
            .options(hasty())
    }

    /// How many messages wait in a queue for a consumer.
    async fn waiting(&self, name: &str) -> Option<u32> {
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::durable() };
        let declared = self.channel.queue_declare(name.into(), passive, FieldTable::default()).await;
        declared.ok().map(|queue| queue.message_count())
    }

    async fn delete(self) {
        for name in [self.name.clone(), format!("{}.dead", self.name)] {
            let _gone = self.channel.queue_delete(name.as_str().into(), QueueDeleteOptions::default()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_three_times_and_shuffled_is_entered_once() {
    const PAYMENTS: usize = 60;
    let ledger = Ledger::new().await;
    let queue = Queue::new().await;
    let events: Vec<_> = (0..PAYMENTS)
        .map(|number| event(&format!("payment/{}", number % 7), &format!("pay_{number}")))
        .collect();
    let (sink, mut dice) = (queue.sink(), Dice::seeded(7));
    for number in 0..PAYMENTS * 3 {
        let number =
            if number < PAYMENTS { number } else { usize::try_from(dice.below(PAYMENTS as u64)).unwrap() };
        sink.publish(&events[number]).await.unwrap();
    }
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::rabbitmq(queue.consumer(), bookkeeper);
    for _ in 0..PAYMENTS * 3 {
        let delivery = told.recv().await.unwrap();
        let number: usize = std::str::from_utf8(&delivery.payload[4..]).unwrap().parse().unwrap();
        assert_eq!((delivery.id, &delivery.aggregate), (events[number].id.into(), &events[number].aggregate));
    }
    running.stop().await;
    assert_eq!(queue.waiting(&queue.name).await, Some(0), "all are acknowledged");
    let entries = ledger.entries().await;
    assert_eq!(entries.len(), PAYMENTS);
    assert!(entries.values().all(|times| *times == 1), "{entries:?}");
    queue.delete().await;
}

#[tokio::test]
async fn a_consumer_that_dies_between_commit_and_acknowledgement_has_had_the_effect() {
    let ledger = Ledger::new().await;
    let queue = Queue::new().await;
    queue.sink().publish(&event("payment/pay_1", "pay_1")).await.unwrap();
    let (committed, mut reached) = mpsc::unbounded_channel();
    let inbox = ledger.inbox.clone();
    let dying = Running::rabbitmq(queue.consumer(), move |delivery: Delivery| {
        let (inbox, committed) = (inbox.clone(), committed.clone());
        async move {
            enter_delivery(&inbox, &delivery).await?;
            committed.send(()).unwrap();
            std::future::pending().await
        }
    });
    reached.recv().await.unwrap();
    dying.kill().await;
    assert_eq!(ledger.lines().await.len(), 1);

    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::rabbitmq(queue.consumer(), bookkeeper);
    told.recv().await.unwrap();
    running.stop().await;
    assert_eq!((ledger.lines().await.len(), queue.waiting(&queue.name).await), (1, Some(0)));
    queue.delete().await;
}

/// A network that can be cut.
struct Network {
    url: String,
    connections: mpsc::UnboundedSender<()>,
    made: Arc<AtomicUsize>,
}

impl Network {
    async fn to(url: &str) -> Self {
        let target = url.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url.replace(&target, &listener.local_addr().unwrap().to_string());
        let (connections, mut cut) = mpsc::unbounded_channel();
        let made = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&made);
        tokio::spawn(async move {
            let mut passing = JoinSet::new();
            loop {
                tokio::select! {
                    Ok((mut client, _)) = listener.accept() => {
                        counting.fetch_add(1, Ordering::SeqCst);
                        let target = target.clone();
                        passing.spawn(async move {
                            let mut server = TcpStream::connect(target).await.unwrap();
                            let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                        });
                    }
                    order = cut.recv() => match order {
                        Some(()) => passing.shutdown().await,
                        None => return,
                    },
                }
            }
        });
        Self { url, connections, made }
    }

    fn cut(&self) {
        self.connections.send(()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_cut_over_and_over_loses_nothing_and_repeats_nothing() {
    const PAYMENTS: usize = 60;
    let ledger = Ledger::new().await;
    let queue = Queue::new().await;
    let network = Network::to(&queue.url).await;
    let consumer = RabbitMqConsumer::new(&network.url, &queue.name)
        .bound_to(&queue.exchange, "PaymentCreated")
        .options(hasty());
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::rabbitmq(consumer, bookkeeper);
    let sink = RabbitMqSink::new(&network.url, &queue.exchange);
    for number in 0..PAYMENTS {
        let event = event(&format!("payment/{}", number % 5), &format!("pay_{number}"));
        until("a broker that takes it", async || sink.publish(&event).await.ok()).await;
        if number % 20 == 10 {
            told.recv().await.unwrap();
            network.cut();
        }
    }
    let complete = async || {
        let entries = ledger.entries().await;
        (entries.len() == PAYMENTS).then_some(entries)
    };
    let entries = until("the last payment", complete).await;
    running.stop().await;
    assert!(entries.values().all(|times| *times == 1), "{entries:?}");
    assert_eq!(queue.waiting(&queue.name).await, Some(0));
    assert!(network.made.load(Ordering::SeqCst) >= 6, "sink and consumer both came back");
    queue.delete().await;
}

/// The one test with a broker of its own: it takes ten seconds to start, twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_killed_loses_nothing_and_repeats_nothing() {
    const PAYMENTS: usize = 40;
    let ledger = Ledger::new().await;
    let mut broker = RabbitMq::begin().unwrap();
    broker.ready().unwrap();
    let queue = Queue::at(broker.url()).await;
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::rabbitmq(queue.consumer(), bookkeeper);
    let sink = queue.sink();
    let publish = async |number: usize| {
        let event = event(&format!("payment/{}", number % 5), &format!("pay_{number}"));
        until("a broker that takes it", async || sink.publish(&event).await.ok()).await;
    };
    for number in 0..PAYMENTS / 2 {
        publish(number).await;
    }
    // Some have been handled by now, and some not.
    told.recv().await.unwrap();
    broker.kill().unwrap();
    let unreachable = sink.publish(&event("payment/lost", "lost")).await;
    assert!(matches!(unreachable, Err(Undelivered::Unreachable(_))), "{unreachable:?}");
    broker.start_again().unwrap();
    broker.ready().unwrap();
    for number in PAYMENTS / 2..PAYMENTS {
        publish(number).await;
    }
    let complete = async || {
        let entries = ledger.entries().await;
        (entries.len() == PAYMENTS).then_some(entries)
    };
    let entries = until("the last payment", complete).await;
    running.stop().await;
    assert!(entries.values().all(|times| *times == 1), "{entries:?}");
}

#[tokio::test]
async fn a_queue_that_is_deleted_under_its_consumer_is_made_anew() {
    let ledger = Ledger::new().await;
    let queue = Queue::new().await;
    let (bookkeeper, mut told) = ledger.bookkeeper();
    let running = Running::rabbitmq(queue.consumer(), bookkeeper);
    queue.sink().publish(&event("a", "a1")).await.unwrap();
    told.recv().await.unwrap();
    queue.channel.queue_delete(queue.name.as_str().into(), QueueDeleteOptions::default()).await.unwrap();
    let second = event("a", "a2");
    until("the queue", async || queue.sink().publish(&second).await.ok()).await;
    told.recv().await.unwrap();
    running.stop().await;
    assert_eq!(ledger.lines().await, ["a1", "a2"]);
    queue.delete().await;
}

#[tokio::test]
async fn a_poison_message_is_set_aside_with_its_reason_and_holds_nobody_up() {
    let ledger = Ledger::new().await;
    let queue = Queue::new().await;
    for (aggregate, payment) in [("a", "poison"), ("a", "a2"), ("b", "b1")] {
        queue.sink().publish(&event(aggregate, payment)).await.unwrap();
    }
    // Without an id nobody could tell a repetition.
    let nameless = BasicProperties::default().with_expiration("300".into());
    let (exchange, key) = (queue.exchange.as_str().into(), "PaymentCreated".into());
    let publishing =
        queue.channel.basic_publish(exchange, key, BasicPublishOptions::default(), b"nameless", nameless);
    publishing.await.unwrap().await.unwrap();

    let tries = Arc::new(AtomicUsize::new(0));
    let (inbox, counted) = (ledger.inbox.clone(), Arc::clone(&tries));
    let handler = move |delivery: Delivery| {
        let (inbox, counted) = (inbox.clone(), Arc::clone(&counted));
        async move {
            if delivery.payload == "poison" {
                counted.fetch_add(1, Ordering::SeqCst);
                return Err(Failure::Failed("it does not agree with us".into()));
            }
            enter_delivery(&inbox, &delivery).await
        }
    };
    let running =
        Running::rabbitmq(queue.consumer().options(ConsumerOptions { tries: 3, ..hasty() }), handler);
    let dead = format!("{}.dead", queue.name);
    until("two dead letters", async || (queue.waiting(&dead).await == Some(2)).then_some(())).await;
    until("the others", async || (ledger.lines().await.len() == 2).then_some(())).await;
    running.stop().await;
    // What is set aside stays, however short its own time was.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(queue.waiting(&dead).await, Some(2));
    assert_eq!(tries.load(Ordering::SeqCst), 3);
    assert_eq!(ledger.entries().await, ["a2", "b1"].map(|name| (name.to_owned(), 1)).into());
    assert_eq!(queue.waiting(&queue.name).await, Some(0));
    let mut letters = Vec::new();
    for _ in 0..2 {
        let got = queue
            .channel
            .basic_get(dead.as_str().into(), BasicGetOptions { no_ack: true })
            .await
            .unwrap()
            .unwrap();
        let reason =
            got.properties.headers().as_ref().unwrap().inner().get("Semel-Dead-Reason").unwrap().clone();
        letters.push((String::from_utf8(got.delivery.data).unwrap(), reason));
    }
    letters.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(letters[1], ("poison".into(), AMQPValue::LongString("it does not agree with us".into())));
    assert_eq!(letters[0].0, "nameless");
    queue.delete().await;
}

#[tokio::test]
async fn a_message_that_killed_its_consumer_too_often_is_set_aside_untried() {
    let queue = Queue::new().await;
    queue.sink().publish(&event("a", "killer")).await.unwrap();
    let consumer = || queue.consumer().options(ConsumerOptions { deliveries: 2, ..hasty() });
    let (tell, mut tried) = mpsc::unbounded_channel();
    let handler = move |_: Delivery| {
        tell.send(()).unwrap();
        std::future::pending::<Result<(), Failure>>()
    };
    for _ in 0..2 {
        let running = Running::rabbitmq(consumer(), handler.clone());
        tried.recv().await.unwrap();
        running.kill().await;
    }
    let running = Running::rabbitmq(consumer(), handler);
    let dead = format!("{}.dead", queue.name);
    until("the dead letter", async || (queue.waiting(&dead).await == Some(1)).then_some(())).await;
    running.kill().await;
    assert!(tried.try_recv().is_err(), "untried");
    queue.delete().await;
}
