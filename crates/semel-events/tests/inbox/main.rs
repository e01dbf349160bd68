//! Shows that a message has its effect once: delivered twice, at two consumers at once, to one that is killed, from a broker that is
//! killed. Effects are counted where they happen, as rows of a real store; brokers are the real ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod broker;
mod killed;
mod ledger;
mod moved_clock;
mod nats;
mod on_postgres;
mod on_sqlite;
mod rabbitmq;
#[path = "../../../semel-postgres/tests/server_clock/mod.rs"]
mod server_clock;
mod sinks;
