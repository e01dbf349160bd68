//! The gateway of Semel: the layer of `semel-tower` in front of any HTTP service, in any language.
//!
//! The way of a request: `listener` (accepts and guards the framing) → the layer of `semel-tower` (decides) → `upstream` (forwards). Beside
//! it `admin` answers on a listener of its own.

pub mod admin;
mod alarm;
mod capacity;
pub mod config;
pub mod contract;
mod headers;
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
pub use process::{Gateway, OutboxError, Running, SettlingError, StartError, Stopped, Working};
pub use reload::{Reload, ReloadError, Reloaded};
pub use secret::{Environment, Secret, SecretError};
pub use store::{OpenStoreError, OpenedStore, Outbox, StoreUrl, StoreUrlError};
