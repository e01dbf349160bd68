//! The store's handle.

use crate::api::{Api, Failure};
use crate::listing::place;
use crate::mark::Ticker;
use crate::names;
use crate::remembered::{self, Format};
use crate::together::{each, whole};
use bytes::Bytes;
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Created, Cursor, DamageLog, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat,
    KeyFormatSet, LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError,
    StoreFuture, Swap, Swapped, Timestamp,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

/// How many batches of one kind are in flight at once. Each item is a request of its own, so that larger batches make nothing faster; but their
/// pointers are written together.
const BATCHES: usize = 8;

/// A durable memory of records in a DynamoDB table, for as many instances as there are.
///
/// A handle is cheap to clone, and clones share its connections.
///
/// ```no_run
/// # use semel_dynamodb::{DynamoStore, OpenError};
/// # async fn run() -> Result<(), OpenError> {
/// let store = DynamoStore::open("dynamodb://semel-keys?region=eu-central-1").await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct DynamoStore {
    api: Api,
    format: Arc<Format>,
    damage: Arc<DamageLog>,
    /// Where the last record stands among those that were made in one moment.
    place: Arc<AtomicU64>,
    _ticker: Arc<Ticker>,
}

impl DynamoStore {
    pub(crate) fn new(api: Api, ticker: Ticker) -> Self {
        Self {
            api,
            format: Arc::default(),
            damage: Arc::default(),
            place: Arc::default(),
            _ticker: Arc::new(ticker),
        }
    }

    /// Removes some of the parts that no record names and that are older than a day: of writes that lost, and of answers that were written again.
    /// Returns how many answers or checkpoints went. A task of each handle does so once a minute.
    ///
    /// # Errors
    /// As any call of the store.
    pub async fn sweep(&self) -> Result<usize, StoreError> {
        self.api.sweep().await
    }

    pub(crate) fn api(&self) -> &Api {
        &self.api
    }

    /// The first of so many places among records of one moment. By the machine's clock, so that of two processes the one that comes second
    /// mostly stands behind the first; never twice the same, and never back, in one process.
    fn next_places(&self, count: u64) -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(since.as_micros()).unwrap_or(0);
        let next = |last: u64| Some(last.max(now).saturating_add(count));
        let last = self.place.fetch_update(Relaxed, Relaxed, next).unwrap_or(now);
        last.max(now)
    }

    async fn create_all(&self, batch: Vec<Draft>) -> Result<Answer<Created>, StoreError> {
        batch.iter().try_for_each(semel::check_draft)?;
        self.format.check(&self.api, &batch).await?;
        let moment = self.api.moment().await?;
        let pointers: Vec<(String, String)> = batch
            .iter()
            .map(|draft| (names::pointer(draft.operation_id), names::record(&draft.key)))
            .collect();
        let nth = self.next_places(batch.len() as u64);
        let ids: Vec<OperationId> = batch.iter().map(|draft| draft.operation_id).collect();
        let tasks = (nth..).zip(batch).map(|(nth, draft)| {
            let (api, place) = (self.api.clone(), place(moment.told, nth, draft.operation_id));
            async move { api.create(draft, moment, place).await }
        });
        let created = each(tasks).await;
        let is_new = |created: &Result<Created, StoreError>| {
            matches!(created, Ok(Created::Inserted) | Err(StoreError::Lost(_)))
        };
        let new: Vec<_> = created
            .iter()
            .zip(pointers)
            .filter(|(created, _)| is_new(created))
            .map(|(_, pointer)| pointer)
            .collect();
        // Before anybody executes: a webhook or a poll finds the record by its operation id.
        if !new.is_empty() {
            self.api.put_pointers(&new).await.map_err(|failure| match failure {
                Failure::Unknown(why) | Failure::NotSent(why) => StoreError::Lost(why),
                other => StoreError::Lost(other.of_read().to_string()),
            })?;
            let of_new =
                created.iter().zip(ids).filter(|(created, _)| matches!(created, Ok(Created::Inserted)));
            self.api.pointers().are_there(of_new.map(|(_, id)| id));
        }
        let items = whole(created, |created| *created == Created::Inserted)?;
        Ok(Answer::at(moment.told, items))
    }
}

impl Store for DynamoStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        let this = self.clone();
        Box::pin(async move {
            // To the end, even if nobody waits any more: a record is not left without its pointer.
            let creating = tokio::spawn(async move { this.create_all(batch).await });
            creating.await.unwrap_or_else(|_| Err(StoreError::Lost("a task of the store broke off".into())))
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            batch.iter().try_for_each(Swap::check)?;
            let moment = self.api.moment().await?;
            let tasks = batch.into_iter().map(|swap| {
                let api = self.api.clone();
                async move { api.swap(swap, moment).await }
            });
            let items = whole(each(tasks).await, |swapped| *swapped == Swapped::Done)?;
            Ok(Answer::at(moment.told, items))
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            let moment = self.api.moment().await?;
            let tasks = batch.into_iter().map(|expected| {
                let api = self.api.clone();
                async move { api.remove(expected).await }
            });
            let items = whole(each(tasks).await, |swapped| *swapped == Swapped::Done)?;
            Ok(Answer::at(moment.told, items))
        })
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            if keys.is_empty() {
                return Ok(Answer::at(self.api.moment_now().await?.told, Vec::new()));
            }
            let names: Vec<String> = keys.iter().map(names::record).collect();
            let mut items = self.api.items(&names, &[]).await?;
            let mut found: HashMap<&String, Option<Record>> = HashMap::new();
            for name in &names {
                if let Some(item) = items.remove(name) {
                    found.insert(name, self.api.whole(item).await?);
                }
            }
            let records: Vec<&Record> = found.values().flatten().collect();
            self.api.ensure_pointers(&records).await?;
            let now = self.api.moment().await?.told;
            Ok(Answer::at(now, names.iter().map(|name| found.get(name).cloned().flatten()).collect()))
        })
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            let mut found = Vec::with_capacity(ids.len());
            for item in self.api.found(&ids, &[]).await? {
                found.push(match item {
                    Some(item) => self.api.whole(item).await?,
                    None => None,
                });
            }
            Ok(Answer::at(self.api.moment().await?.told, found))
        })
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        Box::pin(self.api.history(id))
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        Box::pin(async move { self.api.list(&filter, from, limit, &self.damage).await })
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move { self.api.count_live(&tenant, at_most).await })
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        Box::pin(self.api.live_operations(newest))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        Box::pin(async move { self.api.due(&query, &self.damage).await })
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        Box::pin(self.api.drop_answers(at_most))
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        Box::pin(self.api.purge(at_most))
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        Box::pin(async move { self.format.remember(&self.api, &name, &value).await })
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move { remembered::recall(&self.api, &name).await })
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        Box::pin(async move {
            self.api.mark(request == ClockRequest::Accept).await?;
            let looked = self.api.look().await?;
            Ok(self.api.time().report(&looked))
        })
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move { remembered::replace(&self.api, &name, &expected, value).await })
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        Box::pin(remembered::set_key_format(&self.api, format, respell))
    }

    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            change.as_ref().map_or(Ok(()), Swap::check)?;
            let moment = self.api.moment().await?;
            let swapped = self.api.audit(&entry, change, moment, self.next_places(1)).await?;
            Ok(Answer::at(moment.told, vec![swapped]))
        })
    }

    fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, AuditPage> {
        Box::pin(async move { self.api.audited(&filter, from, limit, &self.damage).await })
    }

    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64> {
        Box::pin(self.api.purge_audit(older_than, at_most))
    }

    fn max_concurrent_batches(&self) -> usize {
        BATCHES
    }
}
