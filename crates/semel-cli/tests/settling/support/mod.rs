//! Real processes, and somebody to talk to them.

mod gateway;
mod http;
mod service;
mod shop;

pub(crate) use gateway::{Gateway, SECRET, Worker, config, semel, until};
pub(crate) use http::{Answer, exchange};
pub(crate) use service::Service;
pub(crate) use shop::shop;
