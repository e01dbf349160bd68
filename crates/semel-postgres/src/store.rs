//! The store's handle.

use crate::error::{ActError, CommitError};
use crate::key::KeyHash;
use crate::key_format::REPLACE;
use crate::mark::Ticker;
use crate::read::{not_on_a_standby, read};
use crate::replication::Risk;
use crate::row::computed;
use crate::same_transaction::{self, Reserved, Terms};
use crate::statements::{FIND, READ, RECALL, REMEMBER};
use crate::text::stored;
use crate::watch::Watch;
use crate::write::{Writing, not_durable};
use crate::{audit, key_format, listing};
use bytes::Bytes;
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::clock::{ClockReport, ClockRequest};
use semel::transition::{Act, Claim};
use semel::{
    Answer, Created, Cursor, DamageLog, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat,
    KeyFormatSet, LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError,
    StoreFuture, Swap, Swapped, Timestamp,
};
use sqlx::postgres::PgConnection;
use sqlx::{PgPool, Postgres, Transaction};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// A durable memory of records in a PostgreSQL database, for as many instances as there are.
///
/// A handle is cheap to clone, and clones share its connections.
///
/// ```no_run
/// # use semel_postgres::{OpenError, PgStore};
/// # async fn run() -> Result<(), OpenError> {
/// let store = PgStore::connect("postgres://app:secret@localhost/payments").await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PgStore {
    pub(crate) writing: Writing,
    pub(crate) damage: Arc<DamageLog>,
    pub(crate) max_concurrent_batches: usize,
    pub(crate) _ticker: Arc<Ticker>,
    pub(crate) _watch: Option<Arc<Watch>>,
}

impl PgStore {
    /// The connections, for whatever else is to be done in the same database.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.writing.server.connections.pool
    }

    /// Whether a failover could lose what is acknowledged at this moment. Nothing ever, unless the store was opened as
    /// [`Replication::Synchronous`](crate::Replication::Synchronous).
    #[must_use]
    pub fn risk(&self) -> Risk {
        self.writing.server.commits.risk.clone()
    }

    /// Closes all connections, its own and the pool's, once running calls have ended. Calls find the store unavailable from then
    /// on.
    pub async fn close(self) {
        self.writing.server.connections.close().await;
    }

    /// As [`reserve_in`](crate::reserve_in), under the options of this store.
    ///
    /// # Errors
    /// As there.
    pub async fn reserve_in(&self, conn: &mut PgConnection, draft: Draft) -> Result<Reserved, ActError> {
        self.writing.server.commits.risk.check()?;
        same_transaction::reserve(conn, draft, self.terms()?).await
    }

    /// As [`act_in`](crate::act_in), under the options of this store.
    ///
    /// # Errors
    /// As there.
    pub async fn act_in(
        &self,
        conn: &mut PgConnection,
        claim: &Claim,
        act: &Act,
    ) -> Result<Option<Record>, ActError> {
        same_transaction::act(conn, claim, act, self.terms()?).await
    }

    /// As [`commit_with`](crate::commit_with), under the options of this store.
    ///
    /// # Errors
    /// As there.
    pub async fn commit_with(
        &self,
        transaction: Transaction<'static, Postgres>,
        claim: &Claim,
        act: &Act,
    ) -> Result<Option<Record>, CommitError> {
        let mut transaction = transaction;
        let record = same_transaction::act(&mut transaction, claim, act, self.terms()?).await?;
        self.writing.server.commit(transaction).await?;
        Ok(record)
    }

    fn terms(&self) -> Result<Terms, StoreError> {
        let Writing { server, clock, lossy } = &self.writing;
        Ok(Terms { asked: clock.expect_to_write()?, lossy: *lossy, prepared: server.prepared })
    }
}

impl Store for PgStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        Box::pin(async move {
            batch.iter().try_for_each(semel::check_draft)?;
            self.writing.create(batch).await
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            batch.iter().try_for_each(Swap::check)?;
            self.writing.swap(batch).await
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(self.writing.remove(batch))
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            let Writing { server, clock, .. } = &self.writing;
            let hashes: Vec<KeyHash> = keys.iter().map(KeyHash::of).collect();
            let names = distinct(hashes.iter().map(|hash| hash.uuid()));
            let (now, found) = read(server, clock, READ, names).await?;
            let item = |(key, hash): (&RecordKey, &KeyHash)| {
                Ok(found.by_hash(*hash, key).map_err(StoreError::Damaged)?.cloned())
            };
            let items = keys.iter().zip(&hashes).map(item).collect::<Result<_, StoreError>>()?;
            Ok(Answer::at(now, items))
        })
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            let Writing { server, clock, .. } = &self.writing;
            let names = distinct(ids.iter().copied().map(Uuid::from));
            let (now, found) = read(server, clock, FIND, names).await?;
            let found = found.by_id()?;
            Ok(Answer::at(now, ids.iter().map(|id| found.get(id).cloned()).collect()))
        })
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        Box::pin(listing::history(&self.writing.server, id))
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        Box::pin(async move { listing::list(&self.writing.server, &filter, from, limit, &self.damage).await })
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move { listing::count_live(&self.writing.server, &tenant, at_most).await })
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        Box::pin(listing::live_operations(&self.writing.server, newest))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        Box::pin(async move {
            let Writing { server, clock, .. } = &self.writing;
            listing::due(server, clock, &query, &self.damage).await
        })
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        Box::pin(self.writing.drop_answers(at_most))
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        Box::pin(self.writing.purge(at_most))
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        Box::pin(async move {
            let name = stored(&name);
            let remember = sqlx::query(REMEMBER).bind(&*name).bind(&*value).bind(self.writing.lossy);
            self.writing.server.write(remember).await?;
            // Whether or not it was written, this is the stored value.
            let kept = self.recall_stored(&name).await?;
            kept.ok_or_else(not_durable)
        })
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move { self.recall_stored(&stored(&name)).await })
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        Box::pin(async move {
            self.writing.mark(request == ClockRequest::Accept).await?;
            let (answered, told) = self.writing.look().await?;
            Ok(self.writing.clock.report(&answered, &told))
        })
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let name = stored(&name);
            let replace =
                sqlx::query(REPLACE).bind(&*name).bind(&*expected).bind(&*value).bind(self.writing.lossy);
            self.writing.server.write(replace).await?;
            self.recall_stored(&name).await
        })
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        Box::pin(async move { key_format::set(self.pool(), self.terms()?, format, respell).await })
    }

    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            change.iter().try_for_each(Swap::check)?;
            self.writing.audit(entry, change).await
        })
    }

    fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, AuditPage> {
        Box::pin(async move {
            audit::list(&self.writing.server, &filter, from.as_ref(), limit, &self.damage).await
        })
    }

    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64> {
        Box::pin(self.writing.purge_audit(older_than, at_most))
    }

    fn max_concurrent_batches(&self) -> usize {
        self.max_concurrent_batches
    }
}

impl PgStore {
    async fn recall_stored(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        let rows = self.writing.server.read(sqlx::query(RECALL).bind(name)).await?;
        let row = rows.first().ok_or_else(|| StoreError::Damaged("the server returned no row".into()))?;
        not_on_a_standby(row, 1)?;
        Ok(computed::<Option<&[u8]>>(row, 0)?.map(Bytes::copy_from_slice))
    }
}

/// A name that is asked for twice is looked up once.
fn distinct(names: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut names: Vec<Uuid> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}
