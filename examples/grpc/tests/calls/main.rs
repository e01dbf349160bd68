//! The service, called by tonic's client and by Python's grpcio: directly, and through the gateway.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod gateway;
mod program;
mod python;
mod slow;
