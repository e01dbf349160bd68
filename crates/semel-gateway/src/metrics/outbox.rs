//! The metrics of an outbox.

use super::{Number, registered};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::{Registry, Unit};
use semel_events::outbox::{Counts, OutboxStats};
use std::sync::atomic::Ordering;

/// What is told of the outbox. Gauges are no number (`NaN`) while the store does not answer: an old one that stands still would look
/// like good news.
pub(super) struct OutboxMeters {
    backlog: Number,
    oldest: Number,
    dead_letters: Number,
    published: Counter,
    failed: Counter,
}

impl OutboxMeters {
    pub(super) fn new(registry: &mut Registry) -> Self {
        Self {
            backlog: registered(
                registry,
                "outbox_backlog",
                "Events that are not published yet, including dead letters and those behind them",
                None,
                Number::default(),
            ),
            oldest: registered(
                registry,
                "outbox_oldest",
                "Age of the oldest event waiting to be published; 0 if the outbox has no such event",
                Some(Unit::Seconds),
                Number::default(),
            ),
            dead_letters: registered(
                registry,
                "outbox_dead_letters",
                "Events that their receiver refused and that wait for an operator",
                None,
                Number::default(),
            ),
            published: registered(
                registry,
                "outbox_published",
                "Events published by this process and confirmed by their receiver",
                None,
                Counter::default(),
            ),
            failed: registered(
                registry,
                "outbox_failed",
                "Deliveries by this process that failed: refused, or receiver unavailable",
                None,
                Counter::default(),
            ),
        }
    }

    pub(super) fn set_outbox_stats(&self, stats: Option<OutboxStats>) {
        #[expect(clippy::cast_precision_loss, reason = "a count of this size need not be exact")]
        let number = |of: fn(OutboxStats) -> u64| stats.map_or(f64::NAN, |stats| of(stats) as f64);
        self.backlog.set(number(|stats| stats.backlog));
        self.dead_letters.set(number(|stats| stats.dead_letters));
        self.oldest.set(stats.map_or(f64::NAN, |stats| stats.oldest.as_secs_f64()));
    }

    pub(super) fn set_published(&self, counts: &Counts) {
        self.published.inner().store(counts.published(), Ordering::Relaxed);
        self.failed.inner().store(counts.failed(), Ordering::Relaxed);
    }
}
