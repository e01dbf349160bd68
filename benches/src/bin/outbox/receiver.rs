//! Counts what a receiver has confirmed.

use semel_events::message::Event;
use semel_events::sink::{Sink, Undelivered};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// A receiver that confirms at once: what is measured is the outbox.
#[derive(Clone)]
pub(crate) struct AtOnce;

impl Sink for AtOnce {
    async fn publish(&self, _: &Event) -> Result<(), Undelivered> {
        Ok(())
    }
}

/// A receiver, and how much it has confirmed.
#[derive(Clone)]
pub(crate) struct Counting<S> {
    sink: S,
    counted: Arc<Counted>,
}

#[derive(Default)]
struct Counted {
    events: AtomicUsize,
    wanted: AtomicUsize,
    enough: Notify,
}

impl<S> Counting<S> {
    pub(crate) fn new(sink: S) -> Self {
        Self { sink, counted: Arc::default() }
    }

    /// Waits until so many events are confirmed. Nothing is published twice here, for nobody is killed.
    pub(crate) async fn until(&self, events: usize) {
        self.counted.wanted.store(events, Ordering::SeqCst);
        while self.counted.events.load(Ordering::SeqCst) < events {
            self.counted.enough.notified().await;
        }
    }
}

impl<S: Sink> Sink for Counting<S> {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        self.sink.publish(event).await?;
        let counted = &self.counted;
        if counted.events.fetch_add(1, Ordering::SeqCst) + 1 == counted.wanted.load(Ordering::SeqCst) {
            counted.enough.notify_one();
        }
        Ok(())
    }
}
