//! The gateway as clients of all kinds see it: curl and h2load over every protocol, and a crowd that only holds connections. And how it speaks
//! with its database.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod support;

mod answers;
mod crowd;
mod load;
mod operators;
mod postgres;
