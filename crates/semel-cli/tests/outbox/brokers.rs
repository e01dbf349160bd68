//! Brokers as receivers: `semel worker` takes what was appended to NATS and to RabbitMQ, the real ones.

use crate::support::{Worker, config_on, until};
use crate::{Shop, event};
use async_nats::jetstream::{self, stream};
use lapin::options::{BasicGetOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use semel_events::message::Event;
use semel_events::outbox::postgres::append_all;
use semel_postgres::PgStore;
use semel_testing::database::Database;
use semel_testing::servers::{Nats, Server};
use sqlx::PgPool;
use std::fs::File;
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;
use uuid::Uuid;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Three events of one payment, and one of another.
fn events() -> Vec<Event> {
    let events = (0..3).map(|number| event("payment/pay_1", "PaymentCreated", number));
    events.chain([event("payment/pay_2", "PaymentCreated", 3)]).collect()
}

/// A configuration on this store, which logs everything that there is to be told.
fn config(directory: &Path, store: &str, outbox: &str) -> PathBuf {
    let rest = format!("[outbox]\n{outbox}\n[logs]\nlevel = \"trace\"\n");
    config_on(store, directory, "semel.toml", "127.0.0.1:9".parse().unwrap(), &rest)
}

/// The same address, with a password that a server without users does not ask for.
fn with_password(url: &str) -> String {
    url.replace("nats://", "nats://semel:s3cret@")
}

async fn make_stream(url: &str) -> stream::Stream {
    let context = jetstream::new(async_nats::connect(url).await.unwrap());
    let name = format!("payments-{}", Uuid::new_v4().simple());
    let subjects = vec![format!("{name}.>")];
    context.create_stream(stream::Config { name, subjects, ..stream::Config::default() }).await.unwrap()
}

/// Id, aggregate and payload of everything in the stream, in its order.
async fn kept(stream: &mut stream::Stream) -> Vec<[String; 3]> {
    let messages = stream.info().await.unwrap().state.messages;
    let mut kept = Vec::new();
    for number in 1..=messages {
        let message = stream.get_raw_message(number).await.unwrap();
        let header = |name: &str| message.headers.get(name).unwrap().to_string();
        let payload = String::from_utf8(message.payload.to_vec()).unwrap();
        kept.push([header("Nats-Msg-Id"), header("Semel-Aggregate"), payload]);
    }
    kept
}

/// What a receiver should have got of these events, those of one aggregate in order.
fn as_told(events: &[Event]) -> Vec<[String; 3]> {
    let text = |event: &Event| String::from_utf8(event.payload.to_vec()).unwrap();
    events.iter().map(|event| [event.id.to_string(), event.aggregate.clone(), text(event)]).collect()
}

/// Aggregates have no order among each other.
fn by_aggregate(mut told: Vec<[String; 3]>) -> Vec<[String; 3]> {
    told.sort_by(|one, other| one[1].cmp(&other[1]));
    told
}

#[test]
fn a_worker_publishes_to_nats_even_if_that_is_started_later() {
    let (shop, runtime) = (Shop::new(), runtime());
    let mut broker = Nats::start().unwrap();
    let mut stream = runtime.block_on(make_stream(&broker.url()));
    let name = stream.cached_info().config.name.clone();
    broker.kill().unwrap();
    let events = events();
    shop.append(events.clone());

    let outbox =
        format!("sink = \"{}\"\nsubject = \"{name}\"\nstream = \"{name}\"", with_password(&broker.url()));
    let store = format!("sqlite:{}", shop.path().join("semel.db").display());
    let log = shop.path().join("worker.log");
    let worker = Worker::start_logging(&config(shop.path(), &store, &outbox), File::create(&log).unwrap());
    let logged = || std::fs::read_to_string(&log).unwrap();
    until("its word that nobody is there", || logged().contains("receiver unavailable").then_some(()));

    broker.start_again().unwrap();
    let told = until("the events", || {
        let kept = runtime.block_on(kept(&mut stream));
        (kept.len() == events.len()).then_some(kept)
    });
    assert_eq!(by_aggregate(told), as_told(&events));
    assert_eq!(worker.stop(), Some(0));
    assert_eq!(shop.backlog(), 0);
    assert!(!logged().contains("s3cret") && !logged().contains("async_nats"), "{}", logged());
}

/// A queue for everything that comes to an exchange, both of them new.
async fn make_queue(url: &str) -> (Channel, String) {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let name = format!("payments-{}", Uuid::new_v4().simple());
    let (topic, durable) =
        (ExchangeKind::Topic, ExchangeDeclareOptions { durable: true, ..Default::default() });
    channel.exchange_declare(name.as_str().into(), topic, durable, FieldTable::default()).await.unwrap();
    let own = QueueDeclareOptions { exclusive: true, ..Default::default() };
    channel.queue_declare(name.as_str().into(), own, FieldTable::default()).await.unwrap();
    let bound = QueueBindOptions::default();
    channel
        .queue_bind(name.as_str().into(), name.as_str().into(), "#".into(), bound, FieldTable::default())
        .await
        .unwrap();
    (channel, name)
}

async fn next(channel: &Channel, queue: &str) -> Option<[String; 3]> {
    let options = BasicGetOptions { no_ack: true };
    let delivery = channel.basic_get(queue.into(), options).await.unwrap()?.delivery;
    let id = delivery.properties.message_id().as_ref().unwrap().to_string();
    let headers = delivery.properties.headers().as_ref().unwrap();
    let aggregate = headers.inner().get("semel-aggregate").unwrap().as_long_string().unwrap().to_string();
    Some([id, aggregate, String::from_utf8(delivery.data.to_vec()).unwrap()])
}

#[test]
fn a_worker_publishes_to_rabbitmq_what_was_appended_on_postgresql() {
    let (directory, runtime) = (tempfile::tempdir().unwrap(), runtime());
    let url = Server::RabbitMq.url();
    let (channel, name) = runtime.block_on(make_queue(&url));
    let (events, database) = (events(), runtime.block_on(Database::new()));
    let pool: PgPool = runtime.block_on(async {
        // Makes the tables.
        let store = PgStore::connect(&database.url()).await.unwrap();
        let mut tx = store.pool().begin().await.unwrap();
        append_all(&mut tx, &events).await.unwrap();
        tx.commit().await.unwrap();
        store.pool().clone()
    });

    let outbox = format!("sink = \"{url}\"\nexchange = \"{name}\"");
    let log = directory.path().join("worker.log");
    let config = config(directory.path(), &database.url(), &outbox);
    let worker = Worker::start_logging(&config, File::create(&log).unwrap());
    let mut told = Vec::new();
    until("the events", || {
        told.extend(runtime.block_on(next(&channel, &name)));
        (told.len() == events.len()).then_some(())
    });
    assert_eq!(by_aggregate(told), as_told(&events));
    assert_eq!(worker.stop(), Some(0));
    assert_eq!(runtime.block_on(next(&channel, &name)), None, "each of them once");
    let left = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM semel_outbox");
    assert_eq!(runtime.block_on(left.fetch_one(&pool)).unwrap(), 0);
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(!logged.contains("guest") && !logged.contains("lapin"), "{logged}");
}
