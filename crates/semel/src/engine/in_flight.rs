//! Counts what must not be cut off: tickets that are out and outcomes that are yet to be written.

use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone)]
pub(super) struct InFlightCount {
    count: Arc<watch::Sender<usize>>,
}

impl Default for InFlightCount {
    fn default() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }
}

impl InFlightCount {
    pub(super) fn enter(&self) -> InFlightGuard {
        self.count.send_modify(|count| *count += 1);
        InFlightGuard { count: Arc::clone(&self.count) }
    }

    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    pub(super) async fn drained(&self) {
        // The sender is our own, so the wait cannot end by its being dropped.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Counts for as long as it lives.
pub(super) struct InFlightGuard {
    count: Arc<watch::Sender<usize>>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}
