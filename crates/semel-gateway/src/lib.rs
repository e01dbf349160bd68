//! The gateway of Semel: the layer of `semel-tower` in front of any HTTP service, in any language.
//!
//! The path of a request: `listener` (accepts and guards the framing) → `stack` (the gateway's layers, in their order) → the layer of
//! `semel-tower` (decides) → `upstream` (forwards). `admin` answers on a separate listener.

pub mod admin;
mod capacity;
pub mod config;
pub mod contract;
mod deadline_timer;
mod headers;
pub mod identity;
mod layers;
mod limits;
mod listener;
pub mod metrics;
mod otlp;
mod process;
mod reload;
mod responses;
pub mod route;
mod secret;
mod setting;
mod stack;
mod store;
pub mod tenant;
pub mod tls;
pub mod upstream;

pub use config::Config;
pub use limits::Limits;
pub use listener::{PeerAddress, RequestBody};
pub use process::{
    Gateway, GatewayProcess, OperationsError, OrphanedKeys, OutboxError, SettlingError, StartError, Stopped,
    WorkerProcess,
};
pub use reload::{Reload, ReloadError, Reloaded};
pub use secret::{Environment, Secret, SecretError};
pub use store::{OpenStoreError, OpenedStore, Outbox, StoreUrl, StoreUrlError};

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
