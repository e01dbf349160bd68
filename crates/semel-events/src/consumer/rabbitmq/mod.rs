//! A consumer of a queue of RabbitMQ.

mod receipt;

use super::handler::Handler;
use super::in_order::InOrder;
use super::options::ConsumerOptions;
use crate::sink::declare_exchange;
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicQosOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Connection, ConnectionProperties, Consumer};
use semel::Environment;
use semel::background::spread;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;

/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How long the broker has to let a consumer begin. A connection that is lost meanwhile does not always say so.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a message may be delivered before the broker drops it: never. Saying nothing would mean 20 since RabbitMQ 4.0; "without limit"
/// is a word that earlier ones do not know. What is too much is for the consumer to say, who sets aside and drops nothing.
const NEVER: i32 = i32::MAX;

/// This consumer's settings at the broker.
const TAG: &str = "semel";

/// Takes the messages of a queue. Several processes that consume the same queue share the messages.
///
/// The queue is a durable quorum queue, which counts how often it delivers a message, and is made if it is not there; so is `QUEUE.dead`
/// beside it, for what is set aside. Neither has the limit of 20 deliveries that RabbitMQ has since 4.0, after which it drops a message. A
/// queue that is there and was made differently is not taken: see [`existing_queue`](Self::existing_queue).
///
/// ```no_run
/// use semel_events::consumer::{Delivery, Failure, RabbitMqConsumer};
///
/// # async fn run(stop: impl Future<Output = ()>) {
/// let consumer = RabbitMqConsumer::new("amqp://127.0.0.1:5672/%2f", "ledger").bound_to("payments", "PaymentCreated");
/// consumer.run(async |delivery: Delivery| -> Result<(), Failure> { Ok(()) }, stop).await;
/// # }
/// ```
#[derive(Clone)]
pub struct RabbitMqConsumer {
    url: String,
    queue: String,
    bindings: Vec<(String, String)>,
    options: ConsumerOptions,
    existing: bool,
}

impl std::fmt::Debug for RabbitMqConsumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("RabbitMqConsumer").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// A connection at work.
struct Session {
    connection: Arc<Connection>,
    channel: Channel,
    messages: Consumer,
}

impl RabbitMqConsumer {
    /// Takes what is in this queue of the broker at `url` (`amqp://user:password@host:5672/vhost`).
    pub fn new(url: impl Into<String>, queue: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            queue: queue.into(),
            bindings: Vec::new(),
            options: ConsumerOptions::default(),
            existing: false,
        }
    }

    /// Has this exchange put messages with this routing key into the queue: an event's kind, or a pattern such as `Payment.#`. The
    /// exchange is a durable topic exchange, and is made if it is not there.
    #[must_use]
    pub fn bound_to(mut self, exchange: impl Into<String>, routing_key: impl Into<String>) -> Self {
        self.bindings.push((exchange.into(), routing_key.into()));
        self
    }

    /// Takes the queue as it is, of whatever kind, and fails until it exists.
    ///
    /// Make it a quorum queue: a classic one does not count deliveries, and a message that kills the process is then delivered for ever. And
    /// give it a `delivery-limit` that is never reached, by an argument or a policy: since 4.0 RabbitMQ **deletes** what a quorum queue has
    /// delivered more than 20 times. Messages that are given back when a consumer stops, or was killed with them on its table, count like
    /// any other.
    #[must_use]
    pub fn existing_queue(mut self) -> Self {
        self.existing = true;
        self
    }

    /// Works by these options.
    #[must_use]
    pub fn options(mut self, options: ConsumerOptions) -> Self {
        self.options = options;
        self
    }

    /// Where messages are put that are set aside.
    fn dead_queue(&self) -> String {
        format!("{}.dead", self.queue)
    }

    /// Works until `stop` is ready. A broker that cannot be reached is waited for.
    ///
    /// It may be dropped at any moment, and so may the process die: what was not acknowledged is delivered again.
    pub async fn run(self, handler: impl Handler, stop: impl Future<Output = ()>) {
        let (handler, mut stop) = (Arc::new(handler), pin!(stop));
        let mut pause = Duration::from_millis(100);
        loop {
            let begun = Instant::now();
            let why = tokio::select! {
                session = tokio::time::timeout(PATIENCE, self.begin()) => match session {
                    Err(_) => "the broker does not answer".to_owned(),
                    Ok(Err(error)) => error.to_string(),
                    Ok(Ok(session)) => match self.consume(session, Arc::clone(&handler), stop.as_mut()).await {
                        Some(why) => why,
                        None => return,
                    },
                },
                () = stop.as_mut() => return,
            };
            if begun.elapsed() > LONGEST_PAUSE {
                pause = Duration::from_millis(100);
            }
            tracing::warn!(queue = self.queue, why, "consumer: broker unavailable, retrying");
            tokio::select! {
                () = tokio::time::sleep(spread(pause, &Environment::default())) => {}
                () = stop.as_mut() => return,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn begin(&self) -> Result<Session, lapin::Error> {
        let properties = ConnectionProperties::default().with_connection_name("semel inbox".into());
        let connection = Connection::connect(&self.url, properties).await?;
        let channel = connection.create_channel().await?;
        if self.existing {
            let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::durable() };
            channel.queue_declare(self.queue.as_str().into(), options, FieldTable::default()).await?;
        } else {
            declare_quorum(&channel, &self.queue).await?;
        }
        declare_quorum(&channel, &self.dead_queue()).await?;
        for (exchange, key) in &self.bindings {
            declare_exchange(&connection, exchange).await?;
            let (queue, exchange) = (self.queue.as_str().into(), exchange.as_str().into());
            let options = QueueBindOptions::default();
            channel.queue_bind(queue, exchange, key.as_str().into(), options, FieldTable::default()).await?;
        }
        channel.basic_qos(self.options.in_flight.max(1), BasicQosOptions::default()).await?;
        let (queue, options) = (self.queue.as_str().into(), BasicConsumeOptions::default());
        let messages = channel.basic_consume(queue, TAG.into(), options, FieldTable::default()).await?;
        Ok(Session { connection: Arc::new(connection), channel, messages })
    }

    /// Works until it is stopped (`None`) or the connection is lost.
    async fn consume<H: Handler>(
        &self,
        session: Session,
        handler: Arc<H>,
        mut stop: impl Future<Output = ()> + Unpin,
    ) -> Option<String> {
        let Session { connection, channel, mut messages } = session;
        let mut lanes = InOrder::new(handler, self.options);
        let dead_queue: Arc<str> = self.dead_queue().into();
        let ended = loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(Ok(message)) => lanes.accept(receipt::message(message, &connection, &dead_queue)),
                    Some(Err(error)) => break Some(error.to_string()),
                    None => break Some("the broker cancelled the consumer: the queue is gone, or moved".into()),
                },
                () = lanes.one_through() => {}
                () = &mut stop => break None,
            }
        };
        if ended.is_none() {
            let _gone = channel.basic_cancel(TAG.into(), BasicCancelOptions::default()).await;
        }
        // Also after a loss: what runs comes to its end before the broker delivers it again on the next connection.
        lanes.stop().await;
        // It waits for the broker's word: what was acknowledged before has arrived. What was not is delivered again.
        let closing = connection.close(200, "done".into());
        let _gone = tokio::time::timeout(Duration::from_secs(5), closing).await;
        ended
    }
}

async fn declare_quorum(channel: &Channel, queue: &str) -> Result<(), lapin::Error> {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(NEVER));
    channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), arguments).await.map(drop)
}
