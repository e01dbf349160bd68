//! The calls of a store: what has ended, or is in progress, is answered from Redis; everything is done by the store.

use crate::connection::Put;
use crate::tiered::{Found, Tiered};
use bytes::Bytes;
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Actor, Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, State, Store, StoreError,
    StoreFuture, Swap, Swapped, Timestamp,
};
use std::time::Duration;

/// Batches beyond those that the store works on: while one waits for Redis, the store is not to stand still.
const MORE_BATCHES: usize = 2;

impl Tiered {
    /// Asks the store, and takes note of its time.
    async fn timed<T>(&self, call: StoreFuture<'_, Answer<T>>) -> Result<Answer<T>, StoreError> {
        let asked = self.tier.boottime();
        let answer = call.await?;
        self.tier.observe(answer.moment(), asked);
        Ok(answer)
    }

    async fn create_all(&self, batch: Vec<Draft>) -> Result<Answer<Created>, StoreError> {
        let found = if batch.is_empty() { None } else { self.tier.look_up(&batch).await };
        let Some(Found { hits, now }) = found else {
            return self.create_in_store(batch).await;
        };
        let unknown: Vec<_> =
            batch.into_iter().zip(&hits).filter_map(|(draft, hit)| hit.is_none().then_some(draft)).collect();
        let answer = if unknown.is_empty() {
            Answer::at(now, Vec::new())
        } else {
            self.create_in_store(unknown).await?
        };
        let moment = answer.moment();
        let mut created = answer.items.into_iter();
        // A store that answers too few items fits no batch, and is told so by its caller.
        let items = hits.into_iter().map_while(|hit| match hit {
            Some(record) => Some(Created::Exists(record)),
            None => created.next(),
        });
        Ok(Answer::at(moment, items.collect()))
    }

    async fn create_in_store(&self, batch: Vec<Draft>) -> Result<Answer<Created>, StoreError> {
        let drafts = batch.clone();
        let answer = self.timed(self.inner.create(batch)).await?;
        let now = answer.moment();
        let puts = drafts.into_iter().zip(&answer.items).filter_map(|(draft, created)| match created {
            Created::Inserted => self.tier.seen(&draft.at(now), now, false),
            Created::Exists(record) if is_kept(record) => self.tier.seen(record, now, false),
            _ => None,
        });
        self.tier.write_beside(puts.collect());
        Ok(answer)
    }

    async fn swap_all(&self, batch: Vec<Swap>) -> Result<Answer<Swapped>, StoreError> {
        // Of a batch whose answer is lost, all may have been done.
        batch.iter().for_each(|swap| self.tier.know(swap.next.operation_id, swap.next.version));
        let swaps = batch.clone();
        self.tier.prepare().await;
        let answer = self.timed(self.inner.swap(batch)).await?;
        let now = answer.moment();
        let done = swaps.into_iter().zip(&answer.items).filter(|(_, swapped)| **swapped == Swapped::Done);
        let puts = done.filter_map(|(swap, _)| {
            let actor = swap.history.as_ref().map(|entry| &entry.actor);
            let by_operator = matches!(actor, Some(Actor::Operator(_)));
            self.tier.seen(&swap.next.at(now), now, by_operator)
        });
        let puts: Vec<Put> = puts.collect();
        self.tier.write(puts).await;
        Ok(answer)
    }

    /// An act of an operator.
    async fn audit_one(
        &self,
        entry: AuditEntry,
        change: Option<Swap>,
    ) -> Result<Answer<Swapped>, StoreError> {
        if let Some(swap) = &change {
            self.tier.know(swap.next.operation_id, swap.next.version);
        }
        let swap = change.clone();
        self.tier.prepare().await;
        let answer = self.timed(self.inner.audit(entry, change)).await?;
        let now = answer.moment();
        let is_done = answer.items.first() == Some(&Swapped::Done);
        let put = swap.filter(|_| is_done).and_then(|swap| self.tier.seen(&swap.next.at(now), now, true));
        self.tier.write(put.into_iter().collect()).await;
        Ok(answer)
    }

    async fn remove_all(&self, batch: Vec<Expected>) -> Result<Answer<Swapped>, StoreError> {
        batch
            .iter()
            .for_each(|expected| self.tier.know(expected.operation_id, expected.version.saturating_add(1)));
        let removed = batch.clone();
        self.tier.prepare().await;
        let answer = self.timed(self.inner.remove(batch)).await?;
        let done = removed.iter().zip(&answer.items).filter(|(_, swapped)| **swapped == Swapped::Done);
        let puts = done.filter_map(|(expected, _)| {
            self.tier.gone(&expected.key, expected.operation_id, expected.version, false)
        });
        let puts: Vec<Put> = puts.collect();
        self.tier.write(puts).await;
        Ok(answer)
    }
}

/// Whether a record that the store has may be kept in Redis: it is in progress, or has ended. What is in doubt changes at any moment.
fn is_kept(record: &Record) -> bool {
    matches!(record.state, State::InProgress | State::Completed | State::FailedReplayable)
}

impl Store for Tiered {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        Box::pin(self.create_all(batch))
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(self.swap_all(batch))
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(self.remove_all(batch))
    }

    // Whoever reads wants to know what the store has: an owner whose answer was lost, a waiter, a replay that did not open.
    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(self.timed(self.inner.read(keys)))
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(self.timed(self.inner.find(ids)))
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        self.inner.history(id)
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        self.inner.list(filter, from, limit)
    }

    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(self.audit_one(entry, change))
    }

    fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, AuditPage> {
        self.inner.audited(filter, from, limit)
    }

    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64> {
        self.inner.purge_audit(older_than, at_most)
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        self.inner.count_live(tenant, at_most)
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        self.inner.live_operations(newest)
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        Box::pin(self.timed(self.inner.due(query)))
    }

    // What is dropped or purged is over by the store's time, by which entries are judged, too.
    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        Box::pin(self.timed(self.inner.drop_answers(at_most)))
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        Box::pin(self.timed(self.inner.purge(at_most)))
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        self.inner.remember(name, value)
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.inner.recall(name)
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        if matches!(request, ClockRequest::Accept) {
            // Time leaps with it.
            self.tier.time.forget();
        }
        self.inner.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.inner.replace(name, expected, value)
    }

    // Entries under keys in the other format are never asked for again.
    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.inner.set_key_format(format, respell)
    }

    fn max_concurrent_batches(&self) -> usize {
        self.inner.max_concurrent_batches() + MORE_BATCHES
    }
}
