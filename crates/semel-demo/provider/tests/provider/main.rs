//! The provider over real sockets, with real files, processes and kills.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod command;
mod harness;
mod killed;
mod modes;
mod orders;
mod rates;
mod receiver;
mod settings;
mod webhooks;
