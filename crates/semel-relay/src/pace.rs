//! How a loop goes on: at its pace, slower while the store fails, and not after it was told to stop.

use crate::backoff::spread;
use semel::StoreError;
use std::time::Duration;
use tokio::sync::watch;

/// The shortest pause between two rounds: nothing makes a busy loop of a worker.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause after an error of the store.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How one loop goes on.
pub(crate) struct Pace {
    every: Duration,
    /// Errors in a row.
    failed: u32,
    stopped: watch::Receiver<()>,
}

pub(crate) enum Next {
    Round,
    Stop,
}

impl Next {
    pub(crate) fn stopped(&self) -> bool {
        matches!(self, Self::Stop)
    }
}

impl Pace {
    /// A round every so often, until the other end of the channel is dropped.
    pub(crate) fn new(every: Duration, stopped: watch::Receiver<()>) -> Self {
        Self { every: every.max(SHORTEST_PAUSE), failed: 0, stopped }
    }

    /// Waits for the next round: longer and longer while the store fails, which is said once.
    pub(crate) async fn pause(&mut self, who: &str, error: Option<StoreError>) -> Next {
        match error {
            Some(error) => {
                if self.failed == 0 {
                    tracing::warn!(%error, "{who} cannot work, the store fails it: trying on");
                }
                self.failed = self.failed.saturating_add(1);
            }
            None => {
                if self.failed > 0 {
                    tracing::info!(times = self.failed, "{who} works again");
                }
                self.failed = 0;
            }
        }
        let longer = 2_u32.checked_pow(self.failed).and_then(|times| self.every.checked_mul(times));
        let pause = longer.unwrap_or(LONGEST_PAUSE).min(LONGEST_PAUSE.max(self.every));
        tokio::select! {
            () = tokio::time::sleep(spread(pause)) => Next::Round,
            () = self.stop() => Next::Stop,
        }
    }

    pub(crate) async fn stop(&mut self) {
        // Nothing is ever sent: it ends when the sender is dropped.
        let _ = self.stopped.changed().await;
    }
}
