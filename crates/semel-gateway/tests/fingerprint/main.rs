//! What makes two requests the same: whole gateways on sockets, and bodies as clients write them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]

mod credentials;
mod forms;
mod hosts;
mod multipart;
mod secrets;
mod spellings;
mod support;
