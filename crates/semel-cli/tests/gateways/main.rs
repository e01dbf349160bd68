//! What several gateways promise together, as users run them: the real binary as processes, over real sockets, before a service in
//! another language, on a PostgreSQL that can be lost. One execution whatever comes, doubt in place of a guess, and no word of a
//! client in any log.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]
// They are told to end by signals.
#![cfg(unix)]

mod support;

mod cache;
mod catch_all;
mod client_keys;
mod codes;
mod costs;
mod duplicates;
mod encryption;
mod ending;
mod files;
mod formerly;
mod operators;
mod regions;
mod reload;
mod scope;
mod store_outage;
mod tenants;
