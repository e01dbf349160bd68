//! Tells others what happened, and takes what others tell: events that have their effect once.
//!
//! An [`outbox`] keeps events in the database of the work that they are about, in its transaction, and publishes them through a
//! [`sink`]: NATS JetStream, RabbitMQ or a webhook. A [`consumer`] takes messages from a broker, and an [`inbox`] sees to it that
//! each has its effect once.
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
