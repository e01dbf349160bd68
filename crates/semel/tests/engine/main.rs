//! Shows that the engine keeps its promises on a store that loses answers, hangs, panics or is unavailable, that batches are shared
//! without anybody waiting for company, and that owners, waiters and windows are treated as the specification says.
//!
//! Time is tokio's paused clock and the store's manual one: nothing here sleeps, and every race is held at a gate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test")]

mod cas;
mod client_keys;
mod contention;
#[allow(dead_code, reason = "shared with the tests of semel-tower, which use other parts of it")]
mod fingerprint_secrets;
mod finishing;
mod formerly;
mod handle;
mod hash_secret;
mod leases;
mod lost_answers;
mod observed;
mod owners;
mod phases;
mod quotas;
mod recipes;
mod recovery;
mod scopes;
mod sealing;
mod settling;
mod support;
mod waiters;
mod windows;
