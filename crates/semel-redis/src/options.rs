//! What can be set.

use semel::Environment;
use std::time::Duration;

/// Settings of a [`Tiered`](crate::Tiered) store. The default is right for most.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TierOptions {
    /// How long an entry is used after the store last confirmed it. Default 1 h, from 1 s to 7 days.
    pub max_age: Duration,
    /// How long a call to Redis may take; then the store is asked, and Redis left alone for a while. Default 5 ms, from 1 ms to 1 s.
    pub timeout: Duration,
    /// Whether duplicates of an operation in progress are told so from Redis, for two seconds after the store last said it. Default true.
    pub guard: bool,
    /// PEM certificates of the authorities that Redis' certificate is verified by. `None`: those of the system.
    pub ca: Option<Vec<u8>>,
    /// Clocks and randomness. For tests.
    pub environment: Environment,
}

impl Default for TierOptions {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(3600),
            timeout: Duration::from_millis(5),
            guard: true,
            ca: None,
            environment: Environment::default(),
        }
    }
}

/// A setting is outside its limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidOptions(pub(crate) String);

impl TierOptions {
    /// The limits of `max_age`.
    pub const MAX_AGE: std::ops::RangeInclusive<Duration> =
        Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);
    /// The limits of `timeout`.
    pub const TIMEOUT: std::ops::RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(1);

    pub(crate) fn check(&self) -> Result<(), InvalidOptions> {
        let within = |name: &str, value: Duration, limits: &std::ops::RangeInclusive<Duration>| {
            let wrong = || InvalidOptions(format!("{name} is {value:?}, and has to be within {limits:?}"));
            limits.contains(&value).then_some(()).ok_or_else(wrong)
        };
        within("max_age", self.max_age, &Self::MAX_AGE)?;
        within("timeout", self.timeout, &Self::TIMEOUT)
    }
}
