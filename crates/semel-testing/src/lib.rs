//! What tests and measurements share.
//!
//! [`servers`] start PostgreSQL, NATS and RabbitMQ: in temporary directories, on free ports, gone afterwards. Never a server that
//! happens to run. With the feature `tls`, [`tls`] has certificates and a server that speaks HTTP over TLS.

pub mod servers;
#[cfg(feature = "tls")]
pub mod tls;
