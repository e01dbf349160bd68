//! `semel check` as users run it; and Semel's own gateway, which has to pass every case.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here is a failed test")]

mod command_line;
mod gateway;
mod guide;
mod pages;

use std::process::Command;

/// The binary, whatever the environment of the tests says.
fn semel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_semel"));
    for name in ["NO_COLOR", "CLICOLOR_FORCE", "SEMEL_ADMIN", "SEMEL_ADMIN_TOKEN", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}
