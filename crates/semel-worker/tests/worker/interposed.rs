//! A store that stops whom it is told to stop, and counts what it is asked for.

use bytes::Bytes;
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError, StoreFuture,
    Swap, Swapped, Timestamp,
};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{Barrier, Notify};

/// Where a worker is cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cut {
    /// The call does not get there.
    Before,
    /// The call is done, and nobody is told.
    After,
}

/// In front of another store.
#[derive(Clone)]
pub(crate) struct Interposed {
    inner: Arc<dyn Store>,
    plan: Arc<Plan>,
}

#[derive(Default)]
struct Plan {
    calls: AtomicUsize,
    cut: Mutex<Option<(usize, Cut)>>,
    reached: Notify,
    away: AtomicBool,
    broken: AtomicBool,
    dues: AtomicUsize,
    drops: Mutex<Vec<usize>>,
    purges: Mutex<Vec<usize>>,
    looked_at: AtomicUsize,
    swaps: Mutex<Vec<usize>>,
    meet: Mutex<Option<Arc<Barrier>>>,
    after_find: Mutex<Option<Deed>>,
    before_swap: Mutex<Option<Deed>>,
}

type Deed = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Interposed {
    pub(crate) fn over(inner: Arc<dyn Store>) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// Stops for good whoever makes the call of this number, the first being 0.
    pub(crate) fn cutting(self, call: usize, cut: Cut) -> Self {
        *self.plan.cut.lock().unwrap() = Some((call, cut));
        self
    }

    /// Whoever asks what is due waits until so many do.
    pub(crate) fn meeting(self, barrier: Arc<Barrier>) -> Self {
        *self.plan.meet.lock().unwrap() = Some(barrier);
        self
    }

    /// Does this once the next record was found, before whoever looked for it is told.
    pub(crate) fn after_the_next_find(&self, deed: impl Future<Output = ()> + Send + 'static) {
        *self.plan.after_find.lock().unwrap() = Some(Box::pin(deed));
    }

    /// Does this before the next records are swapped.
    pub(crate) fn before_the_next_swap(&self, deed: impl Future<Output = ()> + Send + 'static) {
        *self.plan.before_swap.lock().unwrap() = Some(Box::pin(deed));
    }

    /// Waits until somebody is stopped.
    pub(crate) async fn reached(&self) {
        self.plan.reached.notified().await;
    }

    /// Fails every call, or none.
    pub(crate) fn be_away(&self, away: bool) {
        self.plan.away.store(away, Ordering::SeqCst);
    }

    /// Panics in every call, or in none.
    pub(crate) fn be_broken(&self, broken: bool) {
        self.plan.broken.store(broken, Ordering::SeqCst);
    }

    /// How many calls were made.
    pub(crate) fn calls(&self) -> usize {
        self.plan.calls.load(Ordering::SeqCst)
    }

    /// Each time that it was asked to drop answers: how many at most.
    pub(crate) fn drops(&self) -> Vec<usize> {
        self.plan.drops.lock().unwrap().clone()
    }

    /// Each time that it was asked to remove what is over: how many at most.
    pub(crate) fn purges(&self) -> Vec<usize> {
        self.plan.purges.lock().unwrap().clone()
    }

    /// How often it was asked what is due.
    pub(crate) fn dues(&self) -> usize {
        self.plan.dues.load(Ordering::SeqCst)
    }

    /// How many records it showed to whoever asked what is due.
    pub(crate) fn looked_at(&self) -> usize {
        self.plan.looked_at.load(Ordering::SeqCst)
    }

    /// The sizes of the batches that were swapped.
    pub(crate) fn swaps(&self) -> Vec<usize> {
        self.plan.swaps.lock().unwrap().clone()
    }

    fn call<'a, T: Send + 'a>(&'a self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        Box::pin(async move {
            assert!(!self.plan.broken.load(Ordering::SeqCst), "as told");
            if self.plan.away.load(Ordering::SeqCst) {
                self.plan.calls.fetch_add(1, Ordering::SeqCst);
                return Err(StoreError::Unavailable("away".into()));
            }
            let number = self.plan.calls.fetch_add(1, Ordering::SeqCst);
            let cut = *self.plan.cut.lock().unwrap();
            match cut.filter(|(at, _)| *at == number) {
                None => return call.await,
                Some((_, Cut::Before)) => {}
                Some((_, Cut::After)) => drop(call.await),
            }
            self.plan.reached.notify_one();
            std::future::pending().await
        })
    }
}

impl Store for Interposed {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        self.call(self.inner.create(batch))
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        self.plan.swaps.lock().unwrap().push(batch.len());
        let deed = self.plan.before_swap.lock().unwrap().take();
        Box::pin(async move {
            if let Some(deed) = deed {
                deed.await;
            }
            self.call(self.inner.swap(batch)).await
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        self.call(self.inner.remove(batch))
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.call(self.inner.read(keys))
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        let deed = self.plan.after_find.lock().unwrap().take();
        Box::pin(async move {
            let found = self.call(self.inner.find(ids)).await;
            if let Some(deed) = deed {
                deed.await;
            }
            found
        })
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        self.call(self.inner.history(id))
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        self.call(self.inner.list(filter, from, limit))
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        self.call(self.inner.live_operations(newest))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        self.plan.dues.fetch_add(1, Ordering::SeqCst);
        let meet = self.plan.meet.lock().unwrap().clone();
        Box::pin(async move {
            let answer = self.call(self.inner.due(query)).await?;
            self.plan.looked_at.fetch_add(answer.items.len(), Ordering::SeqCst);
            if let Some(barrier) = meet {
                barrier.wait().await;
            }
            Ok(answer)
        })
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        self.plan.drops.lock().unwrap().push(at_most);
        self.call(self.inner.drop_answers(at_most))
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        self.plan.purges.lock().unwrap().push(at_most);
        self.call(self.inner.purge(at_most))
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        self.call(self.inner.remember(name, value))
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        self.call(self.inner.count_live(tenant, at_most))
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.call(self.inner.recall(name))
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        self.inner.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.call(self.inner.replace(name, expected, value))
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.call(self.inner.set_key_format(format, respell))
    }

    fn audit(
        &self,
        entry: semel::audit::AuditEntry,
        change: Option<Swap>,
    ) -> StoreFuture<'_, Answer<Swapped>> {
        self.call(self.inner.audit(entry, change))
    }

    fn audited(
        &self,
        filter: semel::audit::AuditFilter,
        from: Option<semel::audit::AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, semel::audit::AuditPage> {
        self.call(self.inner.audited(filter, from, limit))
    }

    fn purge_audit(&self, older_than: std::time::Duration, at_most: usize) -> StoreFuture<'_, u64> {
        self.call(self.inner.purge_audit(older_than, at_most))
    }

    fn max_concurrent_batches(&self) -> usize {
        self.inner.max_concurrent_batches()
    }
}
