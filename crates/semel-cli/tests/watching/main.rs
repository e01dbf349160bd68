//! What can be seen of a gateway from outside: its admin API by its own description, its traces and metrics by a collector, a page of another origin in a browser, and the
//! alert rules and the dashboard that ship with it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]
#![cfg(unix)]

mod admin_api;
mod browser;
mod rules;
mod support;
mod tracing;
