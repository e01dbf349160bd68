//! The SQLite store on real files. What every store has to do is in the conformance kit; here is what this one adds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what helps a test is part of the test"
)]

mod clock;
mod close;
mod costs;
mod damage;
mod fixture;
mod group_commit;
mod listing;
mod log;
mod modes;
mod open;
mod phases;
mod same_transaction;
mod sealing;
mod several_processes;
mod trouble;
