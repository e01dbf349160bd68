//! A service that is not ours, the gateway before it, and a client that can do what no library would.

mod client;
pub(crate) mod configured;
pub(crate) mod frames;
mod front;
pub(crate) mod http2;
mod service;
mod store;

pub(crate) use client::{Answer, Ask, Client, KEY, try_send};
pub(crate) use front::{Front, Setting};
pub(crate) use service::Service;
