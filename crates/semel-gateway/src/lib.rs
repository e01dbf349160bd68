//! The gateway of Semel: any HTTP service, in any language, behind the layer of `semel-tower`.
//!
//! The way of a request: `server` (accepts and guards the framing) → the layer of `semel-tower` (decides) → `proxy` (forwards). Beside
//! it `admin` answers on a listener of its own.

pub mod admin;
pub mod metrics;
mod secret;

pub use secret::{Environment, Secret, SecretError};
