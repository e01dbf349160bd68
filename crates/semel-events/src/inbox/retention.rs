//! How long marks are kept.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How many marks go in one commit: small enough not to delay others.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) const BATCH: i64 = 256;

/// How long others have the store between two batches, at least.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) const PAUSE: Duration = Duration::from_millis(10);

/// How long marks are kept, by the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// The marks of messages. Has to be longer than the broker can deliver a message again: as long as it keeps one that was not
    /// acknowledged (a JetStream stream's `max_age`, a RabbitMQ queue's message TTL). Default 14 days.
    pub messages: Duration,
    /// The marks of effects. Has to be longer than one effect can be told of, by whatever messages. Where it is to hold for ever, put a
    /// unique key into a table of your own as well. Default 90 days.
    pub effects: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { messages: 14 * DAY, effects: 90 * DAY }
    }
}

/// How many marks were forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Forgotten {
    /// Of messages.
    pub messages: u64,
    /// Of effects.
    pub effects: u64,
}

/// In milliseconds, as stores count. What is longer than they can count is for ever.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) fn millis(kept: Duration) -> i64 {
    // Half of the range: taken from any moment that a clock can tell, it stays within it.
    i64::try_from(kept.as_millis()).unwrap_or(i64::MAX).min(i64::MAX / 2)
}
