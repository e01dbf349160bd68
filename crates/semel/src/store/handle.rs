//! The handle through which every store is called.

use super::batches::Batches;
use super::call::Caller;
use super::{
    Answer, Created, Cursor, DueQuery, Filter, KeyFormat, KeyFormatSet, LiveOperations, Page, Purged,
    Respell, Store, StoreError, Swap, Swapped,
};
use crate::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use crate::clock::{ClockReport, ClockRequest};
use crate::history::HistoryLine;
use crate::identity::{OperationId, RecordKey};
use crate::observe::{Observer, StoreCall};
use crate::record::{Draft, Expected, Record};
use crate::time::{Now, Timestamp};
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A store as the engine and the tasks beside it call it. Cheap to clone; clones share batches.
///
/// What it adds to a [`Store`], on every call:
/// - **A timeout.** No call takes longer, but for a conversion of all keys ([`set_key_format`](Self::set_key_format)).
/// - **A panic is an error**: it does not end the caller's task.
/// - **The right error.** A write that has begun and was not answered, in time or because the store panicked, is
///   [`StoreError::Lost`]: it may have been done. A read changes nothing, and is [`StoreError::Unavailable`].
/// - **The observer** sees every call.
/// - **Batches.** [`create`](Self::create), [`swap`](Self::swap), [`remove`](Self::remove) and [`read`](Self::read) take one item, and
///   share a call with others that come at the same moment.
///
/// Dropping a future stops the waiting alone for a batched call, and the call itself for any other: a write may have been done then.
#[derive(Clone)]
pub struct StoreHandle {
    caller: Arc<Caller>,
    batches: Batches,
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHandle").field("timeout", &self.caller.timeout).finish_non_exhaustive()
    }
}

impl StoreHandle {
    /// A handle on `store` whose calls take no longer than `timeout`, without an observer.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, timeout: Duration) -> Self {
        Self::observed(store, timeout, None)
    }

    /// The same, with an observer that sees every call.
    #[must_use]
    pub fn observed(store: Arc<dyn Store>, timeout: Duration, observer: Option<Arc<dyn Observer>>) -> Self {
        let caller = Arc::new(Caller::new(store, timeout, observer));
        Self { batches: Batches::new(&caller), caller }
    }

    /// How long a call may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.caller.timeout
    }

    /// [`Store::create`] of one draft, in a batch with others.
    ///
    /// # Errors
    /// As the store's; after the timeout [`StoreError::Lost`], or [`StoreError::Unavailable`] where the call had not begun.
    pub async fn create(&self, draft: &Draft) -> Result<(Now, Created), StoreError> {
        self.batches.create(draft).await
    }

    /// [`Store::swap`] of one record, in a batch with others.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn swap(&self, swap: &Swap) -> Result<(Now, Swapped), StoreError> {
        self.batches.swap(swap).await
    }

    /// [`Store::remove`] of one record, in a batch with others.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn remove(&self, expected: &Expected) -> Result<(Now, Swapped), StoreError> {
        self.batches.remove(expected).await
    }

    /// [`Store::read`] of one key, in a batch with others.
    ///
    /// # Errors
    /// As the store's, and [`StoreError::Unavailable`] after the timeout.
    pub async fn read(&self, key: &RecordKey) -> Result<(Now, Option<Record>), StoreError> {
        self.batches.read(key).await
    }

    /// [`Store::swap`] of exactly this batch.
    ///
    /// # Errors
    /// As the store's, and [`StoreError::Lost`] without an answer.
    pub async fn swap_all(&self, batch: Vec<Swap>) -> Result<Answer<Swapped>, StoreError> {
        let size = batch.len();
        self.caller.batch(StoreCall::Swap, size, |store| store.swap(batch)).await.0
    }

    /// [`Store::remove`] of exactly this batch.
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn remove_all(&self, batch: Vec<Expected>) -> Result<Answer<Swapped>, StoreError> {
        let size = batch.len();
        self.caller.batch(StoreCall::Remove, size, |store| store.remove(batch)).await.0
    }

    /// What time it is by the store's clock.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn now(&self) -> Result<Now, StoreError> {
        let answer = self.caller.call(StoreCall::Read, |store| store.read(Vec::new())).await?;
        Ok(answer.moment())
    }

    /// [`Store::find`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn find(&self, ids: Vec<OperationId>) -> Result<Answer<Option<Record>>, StoreError> {
        self.caller.call(StoreCall::Find, |store| store.find(ids)).await
    }

    /// [`Store::history`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn history(&self, id: OperationId) -> Result<Vec<HistoryLine>, StoreError> {
        self.caller.call(StoreCall::History, |store| store.history(id)).await
    }

    /// [`Store::list`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        self.caller.call(StoreCall::List, |store| store.list(filter, from, limit)).await
    }

    /// [`Store::count_live`], which may take this long in place of the timeout.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn count_live(
        &self,
        tenant: String,
        at_most: u64,
        within: Duration,
    ) -> Result<u64, StoreError> {
        self.caller
            .within(Some(within), StoreCall::CountLive, |store| store.count_live(tenant, at_most))
            .await
            .0
    }

    /// [`Store::live_operations`], which may take this long in place of the timeout.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn live_operations(
        &self,
        newest: usize,
        within: Duration,
    ) -> Result<LiveOperations, StoreError> {
        self.caller
            .within(Some(within), StoreCall::LiveOperations, |store| store.live_operations(newest))
            .await
            .0
    }

    /// [`Store::due`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn due(&self, query: DueQuery) -> Result<Answer<Record>, StoreError> {
        self.caller.call(StoreCall::Due, |store| store.due(query)).await
    }

    /// [`Store::drop_answers`].
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn drop_answers(&self, at_most: usize) -> Result<Answer<Timestamp>, StoreError> {
        self.caller.call(StoreCall::DropAnswers, |store| store.drop_answers(at_most)).await
    }

    /// [`Store::purge`].
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn purge(&self, at_most: usize) -> Result<Answer<Purged>, StoreError> {
        self.caller.call(StoreCall::Purge, |store| store.purge(at_most)).await
    }

    /// [`Store::remember`].
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn remember(&self, name: String, value: Bytes) -> Result<Bytes, StoreError> {
        self.caller.call(StoreCall::Remember, |store| store.remember(name, value)).await
    }

    /// [`Store::recall`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn recall(&self, name: String) -> Result<Option<Bytes>, StoreError> {
        self.caller.call(StoreCall::Recall, |store| store.recall(name)).await
    }

    /// [`Store::replace`].
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn replace(
        &self,
        name: String,
        expected: Bytes,
        value: Bytes,
    ) -> Result<Option<Bytes>, StoreError> {
        self.caller.call(StoreCall::Replace, |store| store.replace(name, expected, value)).await
    }

    /// [`Store::clock`].
    ///
    /// # Errors
    /// As [`read`](Self::read) for a look, as [`swap_all`](Self::swap_all) where a clock is accepted.
    pub async fn clock(&self, request: ClockRequest) -> Result<ClockReport, StoreError> {
        let call = match request {
            ClockRequest::Look => StoreCall::Clock,
            ClockRequest::Accept => StoreCall::AcceptClock,
        };
        self.caller.call(call, |store| store.clock(request)).await
    }

    /// [`Store::audit`].
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> Result<(Now, Swapped), StoreError> {
        let answer = self.caller.call(StoreCall::Audit, |store| store.audit(entry, change)).await?;
        let now = answer.moment();
        let swapped = answer.items.into_iter().next();
        Ok((now, swapped.ok_or_else(|| StoreError::Lost("the store returned no result".into()))?))
    }

    /// [`Store::audited`].
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> Result<AuditPage, StoreError> {
        self.caller.call(StoreCall::Audited, |store| store.audited(filter, from, limit)).await
    }

    /// [`Store::purge_audit`].
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn purge_audit(&self, older_than: Duration, at_most: usize) -> Result<u64, StoreError> {
        self.caller.call(StoreCall::PurgeAudit, |store| store.purge_audit(older_than, at_most)).await
    }

    /// [`Store::set_key_format`]. With a `respell` it writes every record, and takes as long as that takes: there is no timeout then.
    ///
    /// # Errors
    /// As [`swap_all`](Self::swap_all).
    pub async fn set_key_format(
        &self,
        format: KeyFormat,
        respell: Option<Respell>,
    ) -> Result<KeyFormatSet, StoreError> {
        let limit = respell.is_none().then_some(self.caller.timeout);
        self.caller
            .within(limit, StoreCall::SetKeyFormat, |store| store.set_key_format(format, respell))
            .await
            .0
    }
}
