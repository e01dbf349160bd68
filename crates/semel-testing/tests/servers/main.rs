//! Servers that are started, stopped or killed, started again and gone.
#![allow(clippy::unwrap_used, reason = "what goes wrong here is a failed test")]

mod brokers;
mod postgres;
mod shared;
