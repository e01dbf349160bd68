//! What a message of RabbitMQ is, and what can be said to the broker about it.

use crate::consumer::delivery::Delivery;
use crate::consumer::in_order::{Receipt, ReceivedMessage};
use crate::inbox::MessageId;
use crate::sink::wire;
use bytes::Bytes;
use lapin::options::{BasicAckOptions, BasicNackOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, ShortString};
use lapin::{BasicProperties, Confirmation, Connection, message};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long the broker has for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The broker's word about one delivery.
pub(super) struct RabbitMqReceipt {
    /// Without its payload.
    message: message::Delivery,
    payload: Bytes,
    connection: Arc<Connection>,
    dead_queue: Arc<str>,
}

/// The message as it arrives.
pub(super) fn message(
    mut message: message::Delivery,
    connection: &Arc<Connection>,
    dead_queue: &Arc<str>,
) -> ReceivedMessage<RabbitMqReceipt> {
    let payload = Bytes::from(std::mem::take(&mut message.data));
    let delivery = read(&message.properties, &message.routing_key, &payload);
    let deliveries = earlier_deliveries(&message.properties).map_or(0, |earlier| earlier + 1);
    let (connection, dead_queue) = (Arc::clone(connection), Arc::clone(dead_queue));
    ReceivedMessage {
        delivery,
        deliveries,
        receipt: RabbitMqReceipt { message, payload, connection, dead_queue },
    }
}

fn read(
    properties: &BasicProperties,
    routing_key: &ShortString,
    payload: &Bytes,
) -> Result<Delivery, String> {
    let text = |value: &Option<ShortString>| value.as_ref().map(ToString::to_string);
    // Nothing else tells a repetition from another message.
    let id = text(properties.message_id())
        .ok_or("it has no message_id, so a redelivery could not be recognised")?;
    let id = MessageId::new(id).map_err(|error| error.to_string())?;
    let aggregate = match header(properties, wire::AGGREGATE_FIELD.as_str()) {
        Some(AMQPValue::LongString(name)) => name.to_string(),
        Some(AMQPValue::ShortString(name)) => name.to_string(),
        _ => routing_key.to_string(),
    };
    Ok(Delivery {
        id,
        aggregate,
        kind: text(properties.kind()).unwrap_or_else(|| routing_key.to_string()),
        content_type: text(properties.content_type()).unwrap_or_else(|| wire::UNKNOWN_CONTENT.to_owned()),
        payload: payload.clone(),
    })
}

fn header<'p>(properties: &'p BasicProperties, name: &str) -> Option<&'p AMQPValue> {
    properties.headers().as_ref()?.inner().get(name)
}

/// Quorum queues count, from the second delivery on; others do not.
fn earlier_deliveries(properties: &BasicProperties) -> Option<u64> {
    match header(properties, "x-delivery-count")? {
        AMQPValue::LongLongInt(count) => u64::try_from(*count).ok(),
        AMQPValue::LongInt(count) => u64::try_from(*count).ok(),
        AMQPValue::LongUInt(count) => Some(u64::from(*count)),
        AMQPValue::ShortInt(count) => u64::try_from(*count).ok(),
        AMQPValue::ShortShortInt(count) => u64::try_from(*count).ok(),
        AMQPValue::ShortShortUInt(count) => Some(u64::from(*count)),
        AMQPValue::ShortUInt(count) => Some(u64::from(*count)),
        _ => None,
    }
}

/// What stays of a message that is set aside. Not when it expires, for it is to be there until an operator has looked at it, and not who
/// published it, which the broker accepts from the publisher alone.
fn kept(properties: &BasicProperties) -> BasicProperties {
    let mut kept = BasicProperties::default();
    macro_rules! keep {
        ($($property:ident by $with:ident),*) => {
            $(if let Some(value) = properties.$property() {
                kept = kept.$with(value.clone());
            })*
        };
    }
    keep!(
        content_type by with_content_type,
        content_encoding by with_content_encoding,
        priority by with_priority,
        correlation_id by with_correlation_id,
        reply_to by with_reply_to,
        message_id by with_message_id,
        timestamp by with_timestamp,
        kind by with_type,
        app_id by with_app_id
    );
    kept
}

impl RabbitMqReceipt {
    /// On a channel of its own: nothing else is confirmed or given back there.
    async fn publish_copy(&self, why: &str) -> Result<Confirmation, lapin::Error> {
        let channel = self.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let mut headers = self.message.properties.headers().clone().unwrap_or_default();
        headers.insert(wire::DEAD_REASON.into(), AMQPValue::LongString(wire::one_line(why).into()));
        let properties = kept(&self.message.properties).with_headers(headers).with_delivery_mode(2);
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let (exchange, key) = (ShortString::from(""), ShortString::from(&*self.dead_queue));
        let sent = channel.basic_publish(exchange, key, options, &self.payload, properties).await?;
        let confirmation = sent.await?;
        channel.close(200, "done".into()).await?;
        Ok(confirmation)
    }

    /// Whether the broker was told. What is said into a connection that was just lost is never answered.
    async fn told(&self, word: impl Future<Output = Result<bool, lapin::Error>>) -> Result<(), String> {
        if !self.connection.status().connected() {
            return Err("the connection is lost".into());
        }
        match tokio::time::timeout(PATIENCE, word).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("the broker rejected it".into()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the broker does not answer".into()),
        }
    }
}

impl Receipt for RabbitMqReceipt {
    // The broker waits, for half an hour by default, for as long as the connection stands.
    fn keep_every(&self) -> Option<Duration> {
        None
    }

    async fn keep(&self) {}

    // Closing the connection waits for the broker's word, and so for all that was said before.
    async fn done(&self, _sure: bool) -> Result<(), String> {
        self.told(self.message.acker.ack(BasicAckOptions::default())).await
    }

    async fn set_aside(&self, why: &str) -> Result<(), String> {
        let copied = async { Ok(self.publish_copy(why).await? == Confirmation::Ack(None)) };
        self.told(copied).await.map_err(|trouble| format!("{}: {trouble}", self.dead_queue))?;
        self.done(true).await
    }

    async fn give_back(&self) {
        let options = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
        if let Err(why) = self.told(self.message.acker.nack(options)).await {
            tracing::debug!(why, "could not acknowledge: the broker delivers the message again");
        }
    }
}
