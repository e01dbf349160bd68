//! The gateway of Semel: any HTTP service, in any language, behind the layer of `semel-tower`.
//!
//! The way of a request: `server` (accepts and guards the framing) → the layer of `semel-tower` (decides) → `proxy` (forwards). Beside
//! it `admin` answers on a listener of its own.

mod alarm;
mod answer;
mod entrance;
mod framing;
mod gateway;
mod limits;
pub mod proxy;
mod server;

pub use gateway::{Gateway, Stopped};
pub use limits::Limits;
pub use server::{PeerAddress, RequestBody};
