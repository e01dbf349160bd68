//! Consumers: what takes messages from a broker, hands them to a handler, and acknowledges them when their effect is committed.
//!
//! A [`Handler`] does the work, with an [inbox](crate::inbox) for effects that must happen once. A consumer sees to the rest:
//!
//! - **A message is acknowledged after its handler has succeeded, never before.**
//! - **In order per aggregate.** Messages of one aggregate are handled one after the other, those of others meanwhile. One that fails
//!   is tried again where it is, and those behind it wait. That holds within one consumer; several of them that share a queue, and a
//!   broker that delivers again, can change the order, as anywhere.
//! - **A poison message is set aside** after some failures, where an operator finds it, and its aggregate goes on. What cannot be done
//!   *now* ([`Failure::NotNow`]: the database is unavailable) counts as no failure and is retried.
//! - **A broker that goes away is waited for**, longer and longer between tries.
//! - **Stopping is orderly**: what runs is finished and acknowledged, what waits goes back to the broker.
//!
//! A consumer may be killed at any point: what was not acknowledged is delivered again, and the inbox knows what is done.

mod delivery;
mod failure;
mod handler;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod in_order;
#[cfg(feature = "nats")]
mod nats;
mod options;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;

pub use delivery::Delivery;
pub use failure::Failure;
pub use handler::Handler;
#[cfg(feature = "nats")]
pub use nats::{Misconfigured, NatsConsumer};
pub use options::ConsumerOptions;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::RabbitMqConsumer;
