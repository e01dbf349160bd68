//! What is written to the log, and how.

use semel_gateway::config::{LogConfig, LogFormat};
use std::io::IsTerminal as _;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// They tell of addresses with their passwords, and of every attempt to connect. What becomes of events is told by the publisher.
const CLIENTS_OF_BROKERS: [&str; 2] = ["async_nats", "lapin"];

/// Logs to the standard error from now on.
pub(crate) fn log_as(logs: &LogConfig) {
    let silent = CLIENTS_OF_BROKERS.map(|client| (client, LevelFilter::OFF));
    let told = Targets::new().with_default(logs.level).with_targets(silent);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match logs.format {
        LogFormat::Json => lines.json().boxed(),
        _ => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(told)).init();
}
