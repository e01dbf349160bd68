//! Real processes, and somebody to talk to them.

#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/gateway.rs"]
mod gateway;
#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/http.rs"]
mod http;
#[allow(dead_code, reason = "shared with the tests of settling, which use other parts of it")]
#[path = "../../settling/support/wrong_clock.rs"]
mod wrong_clock;

pub(crate) use gateway::{Gateway, SECRET, Worker, config, config_on, semel, until};
