//! The gateway of Semel: the layer of `semel-tower` in front of any HTTP service, in any language.
//!
//! The path of a request: `listener` (accepts and guards the framing) → `stack` (the gateway's layers, in their order) → the layer of
//! `semel-tower` (decides) → `upstream` (forwards). `admin` answers on a separate listener.

// Hidden: parts for this crate's own tests, and for the binary `semel`. They may change in any release.
#[doc(hidden)]
pub mod acts;
#[doc(hidden)]
pub mod admin;
mod capacity;
#[doc(hidden)]
pub mod config;
#[doc(hidden)]
pub mod console;
#[doc(hidden)]
pub mod contract;
mod deadline_timer;
#[doc(hidden)]
pub mod doctor;
#[doc(hidden)]
pub mod escape;
mod headers;
#[doc(hidden)]
pub mod identity;
mod layers;
mod limits;
mod listener;
#[doc(hidden)]
pub mod metrics;
mod otlp;
mod process;
mod reload;
mod responses;
#[doc(hidden)]
pub mod route;
mod secret;
mod setting;
mod stack;
mod store;
#[doc(hidden)]
pub mod tenant;
#[doc(hidden)]
pub mod tls;
#[doc(hidden)]
pub mod upstream;

pub use config::{Config, ConfigError, ConfigErrors, LoadError, Location, QuickStart, QuickStartErrors};
pub use limits::Limits;
pub use process::{
    GatewayProcess, OperationsError, OrphanedKeys, OutboxError, SettlingError, StartError, Stopped,
    TierError, WorkerProcess,
};
pub use reload::{Reload, ReloadError, Reloaded};
pub use secret::{Environment, Secret, SecretError};
pub use store::{OpenStoreError, StoreUrlError};

#[doc(hidden)]
pub use listener::{PeerAddress, RequestBody};
#[doc(hidden)]
pub use process::Gateway;
#[doc(hidden)]
pub use store::{OpenedStore, Outbox, Replication, Risk, StoreUrl};

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
