//! What is written to the log, and how.

use semel_gateway::config::{LogConfig, LogFormat};
use std::io::IsTerminal as _;

/// Logs to the standard error from now on.
pub(crate) fn log_as(logs: &LogConfig) {
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(logs.level);
    match logs.format {
        LogFormat::Json => lines.json().init(),
        _ => lines.with_ansi(std::io::stderr().is_terminal()).init(),
    }
}
