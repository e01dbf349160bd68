//! What tests and measurements share.
//!
//! [`servers`] start PostgreSQL, NATS and RabbitMQ: in temporary directories, on free ports, gone afterwards. Never a server that
//! happens to run.

pub mod servers;
