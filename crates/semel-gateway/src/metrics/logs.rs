//! Log lines that were dropped.

use super::registered;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::sync::LazyLock;

/// A process has one log, and so one count for all its [`Metrics`](super::Metrics).
static DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Counts log lines that could not be written because the reader of the log does not keep up.
pub fn count_dropped_log_lines(count: u64) {
    DROPPED.inc_by(count);
}

pub(super) fn register(registry: &mut Registry) {
    registered(
        registry,
        "log_lines_dropped",
        "Log lines dropped because the reader of standard error was too slow",
        None,
        DROPPED.clone(),
    );
}
