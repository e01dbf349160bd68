//! Streams, queues and consumers of a test's own, on brokers that tests share.

use async_nats::jetstream::{self, Context, consumer, stream};
use semel_events::consumer::{ConsumerOptions, Handler, NatsConsumer, RabbitMqConsumer};
use semel_events::message::Event;
use semel_events::sink::{NatsSink, Sink as _};
use semel_testing::servers::Server;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

/// A name that nobody else uses.
pub(crate) fn unique(name: &str) -> String {
    format!("{name}-{}", Uuid::new_v4().simple())
}

/// Waits for what somebody else is about to do.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking)
        .await
        .unwrap_or_else(|_| panic!("{what} never came"))
}

/// What makes failures come and go quickly.
pub(crate) fn hasty() -> ConsumerOptions {
    ConsumerOptions { pause: Duration::from_millis(1), ..ConsumerOptions::default() }
}

/// The event of a payment, whose payload is the payment's name.
pub(crate) fn event(aggregate: &str, payment: &str) -> Event {
    Event::json(aggregate, "PaymentCreated", payment.to_owned())
}

/// A stream of the test's own.
pub(crate) struct TestStream {
    pub(crate) context: Context,
    pub(crate) name: String,
}

impl TestStream {
    pub(crate) async fn new() -> Self {
        Self::with(&Server::Nats.url(), |_| ()).await
    }

    pub(crate) async fn with(url: &str, change: impl FnOnce(&mut stream::Config)) -> Self {
        let client = async_nats::connect(url).await.unwrap();
        let context = jetstream::new(client);
        let name = unique("payments");
        let mut config = stream::Config {
            name: name.clone(),
            subjects: vec![format!("{name}.>")],
            max_age: Duration::from_secs(3600),
            ..stream::Config::default()
        };
        change(&mut config);
        context.create_stream(config).await.unwrap();
        Self { context, name }
    }

    pub(crate) fn sink(&self) -> NatsSink {
        NatsSink::new(self.context.clone(), &self.name)
    }

    pub(crate) async fn publish(&self, events: &[Event]) {
        for event in events {
            self.sink().publish(event).await.unwrap();
        }
    }

    pub(crate) fn consumer(&self) -> NatsConsumer {
        NatsConsumer::new(self.context.clone(), &self.name, "ledger").options(hasty())
    }

    /// How many messages the consumer has to come, and how many it has not acknowledged.
    pub(crate) async fn open(&self) -> Option<(u64, usize)> {
        let stream = self.context.get_stream(&self.name).await.ok()?;
        let info = stream.get_consumer::<consumer::pull::Config>("ledger").await.ok()?.cached_info().clone();
        Some((info.num_pending, info.num_ack_pending))
    }

    pub(crate) async fn until_all_acknowledged(&self) {
        until("the last acknowledgement", async || self.open().await.filter(|open| *open == (0, 0))).await;
    }
}

/// A consumer at work.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn nats(consumer: NatsConsumer, handler: impl Handler) -> Self {
        let (stop, stopped) = oneshot::channel();
        let running = async move { consumer.run(handler, async { drop(stopped.await) }).await.unwrap() };
        Self { stop, task: tokio::spawn(running) }
    }

    pub(crate) fn rabbitmq(consumer: RabbitMqConsumer, handler: impl Handler) -> Self {
        let (stop, stopped) = oneshot::channel();
        let running = async move { consumer.run(handler, async { drop(stopped.await) }).await };
        Self { stop, task: tokio::spawn(running) }
    }

    /// Tells it to stop, and waits until it has.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        tokio::time::timeout(Duration::from_secs(30), self.task).await.expect("it stops").unwrap();
    }

    /// Ends it as a crash would: wherever it is.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ended = self.task.await;
    }
}
