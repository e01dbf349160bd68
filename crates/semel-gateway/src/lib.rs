//! The gateway of Semel: any HTTP service, in any language, behind the layer of `semel-tower`.
//!
//! The way of a request: `server` (accepts and guards the framing) → the layer of `semel-tower` (decides) → `proxy` (forwards). Beside
//! it `admin` answers on a listener of its own.

pub mod admin;
pub mod config;
pub mod contract;
mod limits;
pub mod metrics;
pub mod route;
pub mod scope;
mod secret;
mod store_url;

pub use config::Config;
pub use limits::Limits;
pub use secret::{Environment, Secret, SecretError};
pub use store_url::{OpenStoreError, StoreUrl, StoreUrlError};

/// Whose connection a request came over: an extension of every request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PeerAddress(pub std::net::SocketAddr);
