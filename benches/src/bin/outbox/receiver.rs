//! A receiver that confirms at once, and counts: what is measured is the outbox.

use semel_relay::message::Event;
use semel_relay::sink::{Sink, Undelivered};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

#[derive(Clone, Default)]
pub(crate) struct Receiver(Arc<Counted>);

#[derive(Default)]
struct Counted {
    events: AtomicUsize,
    wanted: AtomicUsize,
    enough: Notify,
}

impl Receiver {
    /// Waits until so many events have come. Nothing is published twice here, for nobody is killed.
    pub(crate) async fn until(&self, events: usize) {
        self.0.wanted.store(events, Ordering::SeqCst);
        while self.0.events.load(Ordering::SeqCst) < events {
            self.0.enough.notified().await;
        }
    }
}

impl Sink for Receiver {
    async fn publish(&self, _: &Event) -> Result<(), Undelivered> {
        if self.0.events.fetch_add(1, Ordering::SeqCst) + 1 == self.0.wanted.load(Ordering::SeqCst) {
            self.0.enough.notify_one();
        }
        Ok(())
    }
}
