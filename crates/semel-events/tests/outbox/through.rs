//! A queue that can be stopped, or fail, at a chosen point.

use semel::{StoreError, StoreFuture};
use semel_events::outbox::{Batch, Beat, Lane, Queue, Settlement, Token};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Everything goes through to `queue`, but for settling.
#[derive(Clone)]
pub(crate) struct Through {
    pub(crate) queue: Arc<dyn Queue>,
    /// Settling waits for ever, before anything is written.
    pub(crate) stuck: bool,
    /// So many times settling is done, and its answer lost.
    pub(crate) lost: Arc<AtomicUsize>,
    /// How often settling was asked for.
    pub(crate) settlings: watch::Sender<usize>,
}

impl Through {
    pub(crate) fn to(queue: Arc<dyn Queue>) -> Self {
        Self { queue, stuck: false, lost: Arc::default(), settlings: watch::Sender::default() }
    }
}

impl Queue for Through {
    fn beat(&self, token: Token, lease: Duration) -> StoreFuture<'_, Beat> {
        self.queue.beat(token, lease)
    }

    fn release(&self, token: Token, lanes: Vec<Lane>) -> StoreFuture<'_, ()> {
        self.queue.release(token, lanes)
    }

    fn leave(&self, token: Token) -> StoreFuture<'_, ()> {
        self.queue.leave(token)
    }

    fn read(&self, lanes: Vec<Lane>, per_lane: usize) -> StoreFuture<'_, Batch> {
        self.queue.read(lanes, per_lane)
    }

    fn settle(&self, token: Token, settlement: Settlement) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.settlings.send_modify(|times| *times += 1);
            if self.stuck {
                std::future::pending::<()>().await;
            }
            self.queue.settle(token, settlement).await?;
            let lost = self.lost.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if lost.is_ok() { Err(StoreError::Lost("the answer was lost".into())) } else { Ok(()) }
        })
    }
}
