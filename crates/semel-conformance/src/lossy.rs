//! A store whose answers get lost.

use bytes::Bytes;
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError, StoreFuture,
    Swap, Swapped, Timestamp,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Where a write gets lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The answer is lost: the call was carried out.
    Answer,
    /// On the way there: it is not done.
    Call,
}

/// A store behind a network that loses messages on request. Either way the caller gets [`StoreError::Lost`].
pub struct LossyStore {
    inner: Arc<dyn Store>,
    losses: Mutex<VecDeque<Loss>>,
}

impl LossyStore {
    /// A store that loses its first writes as listed, and no later ones.
    #[must_use]
    pub fn losing(inner: Arc<dyn Store>, losses: impl IntoIterator<Item = Loss>) -> Arc<Self> {
        Arc::new(Self { inner, losses: Mutex::new(losses.into_iter().collect()) })
    }

    /// How many losses are still to come.
    #[must_use]
    pub fn left(&self) -> usize {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn write<'a, T: Send + 'a>(&'a self, call: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let loss = self.losses.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Box::pin(async move {
            match loss {
                None => call.await,
                Some(Loss::Call) => Err(StoreError::Lost("lost on the way there".into())),
                Some(Loss::Answer) => {
                    call.await?;
                    Err(StoreError::Lost("lost on the way back".into()))
                }
            }
        })
    }
}

impl Store for LossyStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        self.write(self.inner.create(batch))
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        self.write(self.inner.swap(batch))
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        self.write(self.inner.remove(batch))
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.inner.read(keys)
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.inner.find(ids)
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        self.inner.history(id)
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        self.inner.list(filter, from, limit)
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        self.inner.live_operations(newest)
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        self.inner.due(query)
    }

    // Dropped twice is dropped: an answer that is lost is nothing to find out about.
    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        self.inner.drop_answers(at_most)
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        self.inner.purge(at_most)
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        self.write(self.inner.remember(name, value))
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        self.inner.count_live(tenant, at_most)
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.inner.recall(name)
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        self.inner.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.write(self.inner.replace(name, expected, value))
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.write(self.inner.set_key_format(format, respell))
    }

    fn audit(
        &self,
        entry: semel::audit::AuditEntry,
        change: Option<Swap>,
    ) -> StoreFuture<'_, Answer<Swapped>> {
        self.write(self.inner.audit(entry, change))
    }

    fn audited(
        &self,
        filter: semel::audit::AuditFilter,
        from: Option<semel::audit::AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, semel::audit::AuditPage> {
        self.inner.audited(filter, from, limit)
    }

    fn purge_audit(&self, older_than: std::time::Duration, at_most: usize) -> StoreFuture<'_, u64> {
        self.inner.purge_audit(older_than, at_most)
    }

    fn max_concurrent_batches(&self) -> usize {
        self.inner.max_concurrent_batches()
    }
}
