//! How an event is spelled on the wire, for those who publish it and those who read it.

use http::HeaderName;

/// The field of webhooks, and the header of RabbitMQ, that names the aggregate.
pub(crate) const AGGREGATE_FIELD: HeaderName = HeaderName::from_static("semel-aggregate");
/// The field of webhooks that names what happened.
pub(crate) const KIND_FIELD: HeaderName = HeaderName::from_static("semel-kind");
/// The header of NATS that names the aggregate: upper and lower case differ there.
#[cfg(feature = "nats")]
pub(crate) const AGGREGATE: &str = "Semel-Aggregate";
/// The header of NATS that names what happened.
#[cfg(feature = "nats")]
pub(crate) const KIND: &str = "Semel-Kind";
/// The header that names the payload's type.
#[cfg(feature = "nats")]
pub(crate) const CONTENT_TYPE: &str = "Content-Type";
/// What a payload is that says nothing of itself.
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
pub(crate) const UNKNOWN_CONTENT: &str = "application/octet-stream";
/// What a message is known by, where it is published again under another name.
#[cfg(feature = "nats")]
pub(crate) const MESSAGE_ID: &str = "Semel-Message-Id";
/// Where a dead letter came from.
#[cfg(feature = "nats")]
pub(crate) const DEAD_SUBJECT: &str = "Semel-Dead-Subject";
/// Why it is one.
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
pub(crate) const DEAD_REASON: &str = "Semel-Dead-Reason";

/// A text as a header can hold it: on one line, and not too long.
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 500;
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(LONGEST).collect()
}
