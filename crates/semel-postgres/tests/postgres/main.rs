//! The PostgreSQL store on a real server. What every store has to do is in the conformance kit; here is what this one adds.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod clock;
mod costs;
mod damage;
mod deploys;
mod fixture;
mod happy_path;
mod hot_updates;
#[path = "../instance/mod.rs"]
mod instance;
mod lost_answers;
mod migration;
mod once;
mod open;
mod open_transactions;
mod phases;
mod same_transaction;
mod sealing;
#[path = "../server_clock/mod.rs"]
mod server_clock;
mod shop;
