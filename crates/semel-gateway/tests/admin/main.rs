//! The admin API over sockets, on a store in memory and on a file: who may ask what, paging, resolving under races and losses, and every
//! metric, driven by requests through the layer and read from the text that Prometheus reads.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]

mod access;
mod audit;
mod counters;
mod dry_runs;
mod gauges;
mod listing;
mod many;
mod outbox;
mod probes;
mod resolving;
mod roles;
mod support;
