//! The configuration as operators write it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what goes wrong here is a failed test"
)]

mod clock;
mod contract;
mod defaults;
mod documented;
mod right;
mod store;
mod telemetry;
mod tls;
mod wrong;

use semel_gateway::Config;
use semel_gateway::config::ConfigErrors;
use std::env::VarError;
use std::path::Path;

/// Reads in an environment of its own: nothing of the machine's gets in.
fn read(toml: &str) -> Result<Config, ConfigErrors> {
    Config::from_toml_in(toml, Path::new("semel.toml"), &|name| match name {
        "SET" | "SEMEL_WEBHOOK_SECRET" | "SEMEL_OUTBOX_SECRET" => {
            Ok("whsec_dGhlLWZpcnN0LXNlY3JldC1pbi10aGUtZW52aXJvbm1lbnQ=".to_owned())
        }
        "SEMEL_KEY_2026_11" => Ok("11".repeat(32)),
        "SEMEL_KEY_2026_05" => Ok("05".repeat(32)),
        _ => Err(VarError::NotPresent),
    })
}
