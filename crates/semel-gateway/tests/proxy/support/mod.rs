//! A service that is not ours, the gateway before it, and a client that can do what no library would.

pub(crate) mod configured;
pub(crate) mod frames;
mod front;
pub(crate) mod http2;
mod store;

pub(crate) use front::{Front, Setting};
pub(crate) use semel_testing::http::Service;
pub(crate) use semel_testing::http::connection::{Answer, Ask, Client, KEY, try_send};
