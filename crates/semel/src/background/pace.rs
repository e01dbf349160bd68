//! How a loop goes on: at its pace, slower while the store fails, and not after it was told to stop.

use super::backoff::spread;
use crate::StoreError;
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
}

/// What a loop does after a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The next round.
    Round,
    /// Nothing more: it was told to stop.
    Stop,
}

impl Next {
    /// Whether the loop was told to stop.
    #[must_use]
    pub fn stopped(&self) -> bool {
        matches!(self, Self::Stop)
    }
}

impl Pace {
    /// A round every so often, until the other end of the channel is dropped.
    #[must_use]
    pub fn new(every: Duration, stopped: watch::Receiver<()>) -> Self {
        Self { every: every.max(SHORTEST_PAUSE), failed: 0, stopped }
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
        match tokio::time::timeout(spread(pause), self.stop()).await {
            Ok(()) => Next::Stop,
            Err(_) => Next::Round,
        }
    }

    /// Waits until the loop is told to stop.
    pub async fn stop(&mut self) {
        // Nothing is ever sent: it ends when the sender is dropped.
        let _ = self.stopped.changed().await;
    }
}
