//! What is written to the log, and how.

mod backlog;

use backlog::{Backlog, LINES_LOST};
use semel_gateway::config::{LogConfig, LogFormat};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal as _;
use std::panic::PanicHookInfo;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// They tell of addresses with their passwords, and of every attempt to connect. What becomes of events is told by the publisher.
const CLIENTS_OF_BROKERS: [&str; 2] = ["async_nats", "lapin"];

/// Writes the last lines when it is dropped: to be held until the process is about to exit.
#[must_use]
pub(crate) struct Logs(Backlog);

/// Logs to the standard error from now on. No caller ever waits for the reader: see `docs/decisions/logging.md`.
pub(crate) fn log_as(logs: &LogConfig) -> std::io::Result<Logs> {
    let silent = CLIENTS_OF_BROKERS.map(|client| (client, LevelFilter::OFF));
    let told = Targets::new().with_default(logs.level).with_targets(silent);
    let told = if logs.level == LevelFilter::OFF {
        told
    } else {
        // Whoever wants to see errors alone wants to know that some are missing.
        told.with_target(LINES_LOST, LevelFilter::WARN)
    };
    let backlog = Backlog::start(std::io::stderr())?;
    let lines = tracing_subscriber::fmt::layer().with_writer(backlog.writer());
    let lines = match logs.format {
        LogFormat::Json => lines.json().boxed(),
        _ => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(told)).init();
    if logs.level != LevelFilter::OFF {
        std::panic::set_hook(Box::new(log_panic));
    }
    Ok(Logs(backlog))
}

/// The standard library's own hook writes to the standard error itself, and would wait there.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("<unnamed>");
    let backtrace = Backtrace::capture();
    match backtrace.status() {
        BacktraceStatus::Captured => tracing::error!(thread, %backtrace, "{panic}"),
        _ => tracing::error!(thread, "{panic}"),
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        self.0.finish();
    }
}
