//! Where events are published to.

#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod broker;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
mod webhook;
pub(crate) mod wire;

#[cfg(any(feature = "nats", feature = "rabbitmq"))]
pub use broker::InvalidBroker;
#[cfg(feature = "nats")]
pub use nats::NatsSink;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::RabbitMqSink;
#[cfg(feature = "rabbitmq")]
pub(crate) use rabbitmq::declare_exchange;
pub use webhook::{InvalidWebhook, Webhook};

use crate::message::Event;
use std::future::Future;

/// Where events are published to.
///
/// What is published may be published again, with the same id: a publisher can be killed between the receiver's confirmation and
/// its own note of it.
pub trait Sink: Send + Sync + 'static {
    /// Publishes one event and returns once the receiver has confirmed that it keeps it. The publisher calls this concurrently for
    /// different aggregates, never for two events of one aggregate at a time.
    fn publish(&self, event: &Event) -> impl Future<Output = Result<(), Undelivered>> + Send;
}

/// Why an event was not delivered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Undelivered {
    /// The receiver as a whole cannot be reached or does not answer in time: nothing is counted against the event, all of them wait
    /// (backoff).
    #[error("receiver unavailable: {0}")]
    Unreachable(String),
    /// The receiver refused this event: counts as an attempt; after the last one it is a dead letter, and holds up its own aggregate
    /// only.
    #[error("refused by the receiver: {0}")]
    Refused(String),
}
