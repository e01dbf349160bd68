//! What tests and measurements share.
//!
//! - [`servers`]: PostgreSQL, PgBouncer, NATS, RabbitMQ and Redis: in temporary directories, on free ports, gone afterwards. Never a server
//!   that happens to run.
//! - `database`: an empty PostgreSQL database for each test, and proxies that cut the connection to it.
//! - `faulty_api`: an idempotent API with a switch for each fault that such APIs have.
//! - `store`: a store that fails when it is told to.
//! - `gateway`: `semel gateway` and `semel worker` as processes, a service behind them.
//! - `http`: clients, servers and services.
//! - [`program`]: a server as a process.
//! - `tls`: certificates, and a server that speaks HTTP over TLS.
//! - `shim`: libraries that are preloaded into a process and change what the kernel tells it.
//!
//! All but servers and programs are features, so that a crate's tests build only what they use.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "whatever goes wrong here fails the test by a panic"
)]
#![allow(
    missing_docs,
    reason = "the names of test helpers say what they do; what they do not say is documented"
)]

#[cfg(feature = "database")]
pub mod database;
#[cfg(feature = "faulty-api")]
pub mod faulty_api;
#[cfg(feature = "gateway")]
pub mod gateway;
#[cfg(feature = "http")]
pub mod http;
pub mod program;
pub mod servers;
#[cfg(feature = "shim")]
pub mod shim;
#[cfg(feature = "store")]
pub mod store;
#[cfg(feature = "tls")]
pub mod tls;
