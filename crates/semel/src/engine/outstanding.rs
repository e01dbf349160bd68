//! Counts what must not be cut off: tickets that are out and outcomes that are yet to be written.

use std::sync::Arc;
use tokio::sync::watch;

#[derive(Clone)]
pub(super) struct Outstanding {
    count: Arc<watch::Sender<usize>>,
}

impl Default for Outstanding {
    fn default() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }
}

impl Outstanding {
    pub(super) fn one_more(&self) -> OneOutstanding {
        self.count.send_modify(|count| *count += 1);
        OneOutstanding { count: Arc::clone(&self.count) }
    }

    pub(super) fn count(&self) -> usize {
        *self.count.borrow()
    }

    pub(super) async fn none_left(&self) {
        // The sender is our own, so the wait cannot end by its being dropped.
        let _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// Counts for as long as it lives.
pub(super) struct OneOutstanding {
    count: Arc<watch::Sender<usize>>,
}

impl Drop for OneOutstanding {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}
