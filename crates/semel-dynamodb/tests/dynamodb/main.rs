//! What only DynamoDB can get wrong: a service that throttles, fails, answers late, twice or not at all, and indexes that lag.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod ambiguity;
mod costs;
mod fixture;
mod indexes;
mod large;
mod open;
#[path = "../proxy/mod.rs"]
mod proxy;
mod same_transaction;
mod time;
