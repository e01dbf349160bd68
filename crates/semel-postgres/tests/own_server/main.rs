//! The PostgreSQL store on servers of the test's own, which are stopped, crashed, demoted and badly set.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "test code: whatever goes wrong fails the test by a panic"
)]

mod costs;
mod crash;
mod failover;
#[path = "../postgres/fixture.rs"]
mod fixture;
#[path = "../instance/mod.rs"]
mod instance;
mod other_products;
mod refused;
mod replicated;
mod replication;
mod standby;
mod waits;
