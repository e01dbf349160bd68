//! Handlers that share their PostgreSQL transactions with the layer, over real sockets and on a real server: domain rows and completion
//! are there together or not at all, whatever is cut off, taken over or ended in between.
//!
//! `cargo xtask test` starts a private server for it; see the tests of `semel-postgres`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared with the tests on SQLite, which use other parts of it")]
#[path = "../http/support/client.rs"]
mod client;
#[path = "../../../semel-postgres/tests/database/mod.rs"]
mod database;
#[allow(dead_code, reason = "shared with the tests of the engine, which use other parts of it")]
#[path = "../../../semel/tests/engine/faulty_store.rs"]
mod faulty_store;
#[allow(dead_code, reason = "shared with the tests of the store, which cut other things off")]
#[path = "../../../semel-postgres/tests/postgres/proxy.rs"]
mod proxy;
#[path = "../http/support/server.rs"]
mod server;

mod complete_in;
mod phases;
mod shop;

use server::Server;
