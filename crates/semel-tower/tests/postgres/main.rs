//! Handlers that share their PostgreSQL transactions with the layer, over real sockets and on a real server: domain rows and completion
//! are there together or not at all, whatever is cut off, taken over or ended in between.
//!
//! `cargo xtask test` starts a private server for it; see the tests of `semel-postgres`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod complete_in;
mod phases;
mod shop;
