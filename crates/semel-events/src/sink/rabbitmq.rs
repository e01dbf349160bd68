//! Events published to an exchange of RabbitMQ.

use super::broker::InvalidBroker;
use super::{Sink, Undelivered, wire};
use crate::message::Event;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::uri::AMQPUri;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ExchangeKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as Turn, Semaphore};

/// How long the broker has for its confirmation.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many events are under way at once at most, each on a channel of its own.
const CHANNELS: usize = 64;

/// What a name may have, in bytes.
const LONGEST_NAME: usize = 255;

/// Publishes each event to a durable topic exchange, with its kind as the routing key and its id as `message_id`. An event is delivered
/// once the broker has confirmed that the queues it went to keep it; one that no queue is bound for is refused.
///
/// A lost connection is opened again with the next event.
pub struct RabbitMqSink {
    url: String,
    exchange: String,
    connection: Turn<Option<Arc<Connection>>>,
    /// Channels that are idle. One event at a time on each: only so is it certain which one the broker gave back, for
    /// it does not say so with the confirmation.
    idle: Mutex<Vec<Channel>>,
    room: Semaphore,
}

impl std::fmt::Debug for RabbitMqSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The address may hold a password.
        f.debug_struct("RabbitMqSink").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

impl RabbitMqSink {
    /// Publishes to this exchange of the broker at `url` (`amqp://user:password@host:5672/vhost`). The exchange is made if it is not
    /// there.
    pub fn new(url: impl Into<String>, exchange: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            exchange: exchange.into(),
            connection: Turn::new(None),
            idle: Mutex::new(Vec::new()),
            room: Semaphore::new(CHANNELS),
        }
    }

    /// Whether there can be a broker at this address.
    ///
    /// # Errors
    /// There can be none.
    pub fn check(url: &str) -> Result<(), InvalidBroker> {
        let parsed: AMQPUri = url.parse().map_err(|_| InvalidBroker::RabbitMq)?;
        // The client would go to localhost instead.
        let in_brackets = url.contains("://[") || url.contains("@[");
        // `amqp://host/`: a virtual host without a name, which is not the one that everybody means.
        if in_brackets || parsed.vhost.is_empty() { Err(InvalidBroker::RabbitMq) } else { Ok(()) }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Channel>> {
        // A list of channels is valid at any time.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn channel(&self) -> Result<Channel, lapin::Error> {
        let usable = {
            let mut idle = self.idle();
            idle.retain(|channel| channel.status().connected());
            idle.pop()
        };
        if let Some(channel) = usable {
            return Ok(channel);
        }
        let channel = self.connection().await?.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }

    /// The connection; of several that find none, one makes it.
    async fn connection(&self) -> Result<Arc<Connection>, lapin::Error> {
        let mut place = self.connection.lock().await;
        if let Some(connection) = place.as_ref().filter(|connection| connection.status().connected()) {
            return Ok(Arc::clone(connection));
        }
        let properties = ConnectionProperties::default().with_connection_name("semel outbox".into());
        let connection = Connection::connect(&self.url, properties).await?;
        declare_exchange(&connection, &self.exchange).await?;
        Ok(Arc::clone(place.insert(Arc::new(connection))))
    }

    async fn publish_on(&self, channel: &Channel, event: &Event) -> Result<Confirmation, lapin::Error> {
        let mut headers = FieldTable::default();
        headers.insert(
            wire::AGGREGATE_FIELD.as_str().into(),
            AMQPValue::LongString(event.aggregate.as_str().into()),
        );
        let properties = BasicProperties::default()
            .with_message_id(event.id.to_string().into())
            .with_type(event.kind.as_str().into())
            .with_content_type(event.content_type.as_str().into())
            // Persistent.
            .with_delivery_mode(2)
            .with_headers(headers);
        let (exchange, key): (ShortString, ShortString) =
            (self.exchange.as_str().into(), event.kind.as_str().into());
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        channel.basic_publish(exchange, key, options, &event.payload, properties).await?.await
    }
}

/// Makes the exchange if it is not there. Those that the broker brings itself cannot be declared.
pub(crate) async fn declare_exchange(connection: &Connection, exchange: &str) -> Result<(), lapin::Error> {
    if exchange.is_empty() || exchange.starts_with("amq.") {
        return Ok(());
    }
    let channel = connection.create_channel().await?;
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(exchange.into(), ExchangeKind::Topic, options, FieldTable::default()).await?;
    channel.close(200, "declared".into()).await
}

impl Sink for RabbitMqSink {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        for (name, text) in [("kind", &event.kind), ("content type", &event.content_type)] {
            if text.len() > LONGEST_NAME {
                return Err(Undelivered::Refused(format!("its {name} is longer than {LONGEST_NAME} bytes")));
            }
        }
        let unreachable = |what: &str| Undelivered::Unreachable(what.to_owned());
        let _place = self.room.acquire().await.map_err(|_| unreachable("the sink is closed"))?;
        let publishing = async {
            let channel = self.channel().await?;
            let confirmation = self.publish_on(&channel, event).await?;
            self.idle().push(channel);
            Ok(confirmation)
        };
        // A channel whose answer did not come is not used again: it is dropped, and closes.
        let confirmation = tokio::time::timeout(PATIENCE, publishing).await;
        let confirmation = confirmation.map_err(|_| unreachable("RabbitMQ did not confirm in time"))?;
        match confirmation.map_err(|error| undelivered(&error, event.payload.len()))? {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(returned)) => Err(Undelivered::Refused(format!(
                "no queue of the exchange {} is bound to the routing key {:?} ({})",
                self.exchange, event.kind, returned.reply_text
            ))),
            // Its queues are full, or it failed itself.
            Confirmation::Nack(_) => Err(unreachable("RabbitMQ could not store it")),
            Confirmation::NotRequested => Err(unreachable("RabbitMQ was not asked for a confirmation")),
        }
    }
}

/// The broker says by closing the channel that a message is too large. Anything else that it closes for is not the event's fault.
fn undelivered(error: &lapin::Error, size: usize) -> Undelivered {
    let said = error.to_string();
    let limit = said.split_once("larger than").and_then(|(_, limit)| {
        limit.split(|letter: char| !letter.is_ascii_digit()).find_map(|number| number.parse::<usize>().ok())
    });
    if limit.is_some_and(|limit| size > limit) {
        return Undelivered::Refused(format!("event too large: {said}"));
    }
    Undelivered::Unreachable(said)
}
