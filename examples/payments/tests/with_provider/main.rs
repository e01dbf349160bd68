//! Payments through a provider: what clients are told, held against the provider's own ledger.
//!
//! The provider runs in this process, on a socket and a ledger of its own; where a test kills something, the service is the real
//! binary.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "../harness/mod.rs"]
mod harness;

mod answers;
mod fail_points;
mod instances;
mod settling;
mod states;
mod support;
