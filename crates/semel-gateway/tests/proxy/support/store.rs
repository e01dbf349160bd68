//! A store whose reservations can be held up.

use bytes::Bytes;
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, MemoryStore, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreFuture,
    Swap, Swapped, Timestamp,
};
use tokio::sync::watch;

/// Reserves only once it is told to.
pub(crate) struct SlowStore(pub(crate) MemoryStore, pub(crate) watch::Receiver<bool>);

impl Store for SlowStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        Box::pin(async move {
            self.1.clone().wait_for(|goes_on| *goes_on).await.unwrap();
            self.0.create(batch).await
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        self.0.swap(batch)
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        self.0.remove(batch)
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.0.read(keys)
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.0.find(ids)
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        self.0.history(id)
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        self.0.list(filter, from, limit)
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        self.0.live_operations(newest)
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        self.0.due(query)
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        self.0.drop_answers(at_most)
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        self.0.purge(at_most)
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        self.0.remember(name, value)
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        self.0.count_live(tenant, at_most)
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.0.recall(name)
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        self.0.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.0.replace(name, expected, value)
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.0.set_key_format(format, respell)
    }

    fn audit(
        &self,
        entry: semel::audit::AuditEntry,
        change: Option<Swap>,
    ) -> StoreFuture<'_, Answer<Swapped>> {
        self.0.audit(entry, change)
    }

    fn audited(
        &self,
        filter: semel::audit::AuditFilter,
        from: Option<semel::audit::AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, semel::audit::AuditPage> {
        self.0.audited(filter, from, limit)
    }

    fn purge_audit(&self, older_than: std::time::Duration, at_most: usize) -> StoreFuture<'_, u64> {
        self.0.purge_audit(older_than, at_most)
    }

    fn max_concurrent_batches(&self) -> usize {
        self.0.max_concurrent_batches()
    }
}
