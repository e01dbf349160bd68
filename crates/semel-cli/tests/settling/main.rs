//! How doubt comes to an end, and what is over is forgotten: `semel` as operators run it, before services that do not answer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(unix)]

mod clocks;
mod evidence;
mod leases;
mod over_tls;
mod polls;
mod provider;
mod support;
mod suspended;
mod webhooks;
mod windows;
mod worker;
