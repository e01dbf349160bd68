//! Shows that doubt is settled by evidence alone and once, that it is forgotten on time and not before, and that workers may be any
//! number, may be cut off anywhere, and need no clock of their own.
//!
//! Time is tokio's paused clock and the store's manual one, but for PostgreSQL, whose time is its own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod asking;
mod bank;
mod clock;
mod cut_off;
mod interposed;
mod leases;
mod polls;
mod postgres;
mod reaping;
mod rekeying;
mod several;
mod support;
mod webhooks;
mod workers;
