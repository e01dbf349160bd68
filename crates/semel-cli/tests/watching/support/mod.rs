//! Real processes, and the tools that look at them.

#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/gateway.rs"]
mod gateway;
#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of the outbox, which use other parts of it")]
#[path = "../../outbox/receiver.rs"]
mod receiver;
#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/service.rs"]
mod service;
mod tools;
mod world;
#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/wrong_clock.rs"]
mod wrong_clock;

pub(crate) use gateway::{Gateway, SECRET, TOKEN, Worker, config, until};
pub(crate) use http::{Answer, exchange};
pub(crate) use receiver::Receiver;
pub(crate) use service::Service;
pub(crate) use tools::python_tool;
pub(crate) use world::World;
