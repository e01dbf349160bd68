//! What the tier does, seen from an engine on it: what reaches the store, what is decided, and what becomes of trouble with Redis.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod builds;
mod cluster;
mod guard;
mod instance;
#[path = "../liar/mod.rs"]
mod liar;
mod operators;
mod replays;
mod sealed;
mod sentinel;
mod trouble;
mod users;
mod windows;
