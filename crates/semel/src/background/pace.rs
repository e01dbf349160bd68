//! The pace of a background loop: slower while the store fails, until it is stopped.

use super::backoff::spread;
use crate::StoreError;
use crate::environment::Environment;
use std::time::Duration;
use tokio::sync::watch;

/// The shortest pause between two rounds: nothing makes a busy loop of a worker.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause after an error of the store.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How one loop goes on.
#[derive(Debug)]
pub struct Pace {
    every: Duration,
    /// Errors in a row.
    failed: u32,
    stopped: watch::Receiver<()>,
    environment: Environment,
}

/// What a loop does after a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next round.
    Round,
    /// Nothing more: the loop was stopped.
    Stop,
}

impl Next {
    /// Whether the loop was stopped.
    #[must_use]
    pub fn stopped(&self) -> bool {
        matches!(self, Self::Stop)
    }
}

impl Pace {
    /// A round every so often, until the other end of the channel is dropped. The machine's chance spreads the pauses.
    #[must_use]
    pub fn new(every: Duration, stopped: watch::Receiver<()>) -> Self {
        Self { every: every.max(SHORTEST_PAUSE), failed: 0, stopped, environment: Environment::default() }
    }

    /// The same pace, with pauses that this environment spreads.
    #[must_use]
    pub fn within(self, environment: Environment) -> Self {
        Self { environment, ..self }
    }

    /// Waits for the next round: longer and longer while the store fails, which is logged once, under the name `who`.
    pub async fn pause(&mut self, who: &str, error: Option<StoreError>) -> Next {
        match error {
            Some(error) => {
                if self.failed == 0 {
                    tracing::warn!(%error, "{who}: store unavailable, retrying");
                }
                self.failed = self.failed.saturating_add(1);
            }
            None => {
                if self.failed > 0 {
                    tracing::info!(times = self.failed, "{who}: store available again");
                }
                self.failed = 0;
            }
        }
        let longer = 2_u32.checked_pow(self.failed).and_then(|times| self.every.checked_mul(times));
        let pause = longer.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE.max(self.every));
        match tokio::time::timeout(spread(pause, &self.environment), self.stop()).await {
            Ok(()) => Next::Stop,
            Err(_) => Next::Round,
        }
    }

    /// Waits until the loop is stopped.
    pub async fn stop(&mut self) {
        // Nothing is ever sent: it ends when the sender is dropped.
        let _ = self.stopped.changed().await;
    }
}
