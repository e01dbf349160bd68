//! One call to a store: bounded, observed, and with a panic as an error.

use super::bounded::{Access, bounded, unbounded};
use super::{Store, StoreError, StoreFuture};
use crate::observe::{Observer, StoreCall};
use crate::trace::Ride;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A store, the time limit of a call to it, and the observer of each call.
pub(super) struct Caller {
    store: Arc<dyn Store>,
    pub(super) timeout: Duration,
    observer: Option<Arc<dyn Observer>>,
}

impl Caller {
    pub(super) fn new(store: Arc<dyn Store>, timeout: Duration, observer: Option<Arc<dyn Observer>>) -> Self {
        Self { store, timeout, observer }
    }

    pub(super) fn max_concurrent_batches(&self) -> usize {
        self.store.max_concurrent_batches().max(1)
    }

    /// Calls the store for one item.
    pub(super) async fn call<'a, T>(
        &'a self,
        call: StoreCall,
        begin: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        self.within(Some(self.timeout), call, begin).await.0
    }

    /// Calls the store for a batch of this size.
    pub(super) async fn batch<'a, T>(
        &'a self,
        call: StoreCall,
        size: usize,
        begin: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T>,
    ) -> (Result<T, StoreError>, Option<Ride>) {
        if let Some(observer) = &self.observer {
            observer.batch(call, size);
        }
        let (answer, took) = self.within(Some(self.timeout), call, begin).await;
        (answer, took.map(|(begun, took)| Ride { begun: begun.into_std(), took, batch: size }))
    }

    /// Calls the store, and waits for its answer as long as `limit` says, without one however long it takes. Without an observer,
    /// nothing is measured.
    pub(super) async fn within<'a, T>(
        &'a self,
        limit: Option<Duration>,
        call: StoreCall,
        begin: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T>,
    ) -> (Result<T, StoreError>, Option<(Instant, Duration)>) {
        let begun = self.observer.as_ref().map(|observer| (observer, Instant::now()));
        // Within the future: a store may panic before it has made its own.
        let calling = async { begin(&*self.store).await };
        let answer = match limit {
            Some(limit) => bounded(access(call), limit, calling).await,
            None => unbounded(access(call), calling).await,
        };
        let took = begun.map(|(observer, begun)| {
            let took = begun.elapsed();
            observer.store_call(call, took, answer.is_ok());
            (begun, took)
        });
        (answer, took)
    }
}

/// Whether a call may change what is stored.
pub(super) fn access(call: StoreCall) -> Access {
    if call.writes() { Access::Write } else { Access::Read }
}
