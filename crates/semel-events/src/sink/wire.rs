//! How an event is spelled on the wire, for those who publish it and those who read it.

/// The header that names the aggregate, in NATS and in webhooks.
#[cfg(feature = "nats")]
pub(crate) const AGGREGATE: &str = "Semel-Aggregate";
/// The header that names what happened.
#[cfg(feature = "nats")]
pub(crate) const KIND: &str = "Semel-Kind";
/// The header that names the payload's type.
#[cfg(feature = "nats")]
pub(crate) const CONTENT_TYPE: &str = "Content-Type";
/// What a payload is that says nothing of itself.
pub(crate) const UNKNOWN_CONTENT: &str = "application/octet-stream";
/// The header of RabbitMQ that names the aggregate.
#[cfg(feature = "rabbitmq")]
pub(crate) const AMQP_AGGREGATE: &str = "semel-aggregate";
/// What a message is known by, where it is published again under another name.
#[cfg(feature = "nats")]
pub(crate) const MESSAGE_ID: &str = "Semel-Message-Id";
/// Where a dead letter came from.
#[cfg(feature = "nats")]
pub(crate) const DEAD_SUBJECT: &str = "Semel-Dead-Subject";
/// Why it is one.
pub(crate) const DEAD_REASON: &str = "Semel-Dead-Reason";

/// A text as a header can hold it: on one line, and not too long.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 500;
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(LONGEST).collect()
}
