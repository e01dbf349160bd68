//! Takes the events of an outbox to a sink.

use super::counts::Counts;
use super::delivery_loop::{DeliveryLoop, Shared};
use super::holding::{Holding, LoopIndex};
use super::lane::Lane;
use super::options::PublisherOptions;
use super::queue::{Batch, Beat, Queue, Settlement, Token};
use crate::sink::Sink;
use semel::Environment;
use semel::background::spread;
use semel::{Access, StoreFuture};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// While one loop waits for the receiver, another one reads, and a third writes down what became of its batch.
const DELIVERY_LOOPS: u8 = 4;

/// Takes the events of an outbox to a sink, at least once each, in order per aggregate. Any number of publishers, in any number of
/// processes, share the work on one store.
///
/// ```
/// use semel_events::outbox::{Publisher, PublisherOptions};
/// # #[cfg(feature = "sqlite")]
/// use semel_events::outbox::sqlite::SqliteOutbox;
/// use semel_events::message::Event;
/// use semel_events::sink::{Sink, Undelivered};
///
/// struct Log;
///
/// impl Sink for Log {
///     async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
///         println!("{event:?}");
///         Ok(())
///     }
/// }
///
/// # #[cfg(feature = "sqlite")]
/// # async fn run(store: semel_sqlite::SqliteStore) {
/// let publisher = Publisher::new(SqliteOutbox::of(&store), Log, PublisherOptions::default());
/// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
/// let running = tokio::spawn(publisher.run(async move { drop(stopped.await) }));
/// // … the service serves …
/// drop(stop);
/// running.await.unwrap();
/// # }
/// ```
pub struct Publisher<S> {
    queue: Arc<dyn Queue>,
    sink: Arc<S>,
    options: PublisherOptions,
    counts: Arc<Counts>,
    wake: watch::Sender<u64>,
}

/// Makes a publisher look into the outbox at once. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Wake(watch::Sender<u64>);

impl Wake {
    /// Something was appended.
    pub fn wake(&self) {
        self.0.send_modify(|times| *times = times.wrapping_add(1));
    }
}

impl<S: Sink> Publisher<S> {
    /// A publisher of the events in `queue`.
    pub fn new(queue: impl Queue, sink: S, options: PublisherOptions) -> Self {
        let options = options.in_bounds();
        let queue = Arc::new(InTime { queue, limit: options.store_timeout });
        Self { queue, sink: Arc::new(sink), options, counts: Arc::default(), wake: watch::Sender::new(0) }
    }

    /// Counts on where another publisher of the same process is, whose place this one takes.
    #[must_use]
    pub fn counting_on(mut self, counts: Arc<Counts>) -> Self {
        self.counts = counts;
        self
    }

    /// What it will have done.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// For an application that appends in the same process: events do not wait for the next look.
    #[must_use]
    pub fn wake(&self) -> Wake {
        Wake(self.wake.clone())
    }

    /// Publishes until `stop` is ready, then waits for what is under way, each event within its deadline, and leaves the rest to
    /// others.
    ///
    /// It may be dropped at any moment, and so may the process die: what was confirmed and not yet written down is published again.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { queue, sink, options, counts, wake } = self;
        let (stopping, stopped) = watch::channel(());
        let holding = Holding::new(options.lease);
        let shared =
            Arc::new(Shared { queue, sink, options, counts, holding, cut_off: AtomicBool::new(false) });
        let mut loops = JoinSet::new();
        for number in 0..DELIVERY_LOOPS {
            let index = LoopIndex { number, of: DELIVERY_LOOPS };
            let delivery = DeliveryLoop::new(index, Arc::clone(&shared), stopped.clone(), wake.subscribe());
            loops.spawn(delivery.run());
        }
        let working = async {
            stop.await;
            drop(stopping);
            while loops.join_next().await.is_some() {}
        };
        tokio::select! {
            () = working => {}
            () = hold_on(&shared, &wake) => {}
        }
        // Others need not wait for the lease. Where the store does not hear it, they do.
        let _left = shared.queue.leave(shared.holding.token).await;
    }
}

/// Renews the leases, for as long as anybody works: no less often while the store fails, for the leases run on.
async fn hold_on<S>(shared: &Shared<S>, wake: &watch::Sender<u64>) {
    let mut held = false;
    loop {
        match shared.holding.beat(&*shared.queue).await {
            Ok(()) if !held => wake.send_modify(|times| *times = times.wrapping_add(1)),
            Err(error) if held => {
                tracing::warn!(%error, "outbox publisher: cannot renew leases, retrying")
            }
            _ => {}
        }
        held = shared.holding.is_good();
        tokio::time::sleep(spread(shared.options.renew_every, &Environment::default())).await;
    }
}

/// A queue whose calls end.
struct InTime<Q> {
    queue: Q,
    limit: Duration,
}

impl<Q: Queue> InTime<Q> {
    fn limited<'a, T: Send + 'a>(&'a self, access: Access, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(semel::bounded(access, self.limit, call))
    }
}

impl<Q: Queue> Queue for InTime<Q> {
    fn beat(&self, token: Token, lease: Duration) -> StoreFuture<'_, Beat> {
        self.limited(Access::Write, self.queue.beat(token, lease))
    }

    fn release(&self, token: Token, lanes: Vec<Lane>) -> StoreFuture<'_, ()> {
        self.limited(Access::Write, self.queue.release(token, lanes))
    }

    fn leave(&self, token: Token) -> StoreFuture<'_, ()> {
        self.limited(Access::Write, self.queue.leave(token))
    }

    fn read(&self, lanes: Vec<Lane>, per_lane: usize) -> StoreFuture<'_, Batch> {
        self.limited(Access::Read, self.queue.read(lanes, per_lane))
    }

    fn settle(&self, token: Token, settlement: Settlement) -> StoreFuture<'_, ()> {
        self.limited(Access::Write, self.queue.settle(token, settlement))
    }
}
