//! Outbox and inbox: events that are published at least once and have their effect once.
//!
//! An [`outbox`] stores events in the transaction of the change that they tell of, and publishes them through a [`sink`]: NATS
//! JetStream, RabbitMQ or a webhook. A [`consumer`] takes messages from a broker, and an [`inbox`] makes sure that each has its
//! effect once.
//!
//! Any number of publishers and consumers may run and may be killed at any point. What was published may be published again, with
//! the same id; the inbox knows it by that id.
//!
//! Features: `postgres` and `sqlite` for outbox and inbox in that database, `nats` and `rabbitmq` for these brokers.

pub mod consumer;
pub mod inbox;
pub mod message;
pub mod outbox;
pub mod sink;

/// Its transactions, pools and errors are in our signatures.
#[cfg(feature = "sqlite")]
pub use rusqlite;
/// Its transactions, pools and errors are in our signatures.
#[cfg(feature = "postgres")]
pub use sqlx;

/// The README's example is a documentation test.
#[cfg(all(doctest, feature = "postgres"))]
#[doc = include_str!("../README.md")]
struct Readme;
