//! A store whose every call can be made to go wrong, for the fault campaign. Behind the feature `fail-points`, and inert unless the
//! environment variable `FAILPOINTS` says what goes wrong where.
//!
//! Each call of the store has two points, as in `store::swap::before` and `store::swap::after`. What happens there is written as the
//! crate `fail` has it, `1*` for once: `panic`, `return(error)`, `return(delay:300)` (in milliseconds). Several are separated by `;`.
//!
//! An error *before* a call is [`StoreError::Unavailable`], for nothing was done. An error *after* it is [`StoreError::Lost`]: it was
//! done, and the caller is not told. A delay waits without holding up the thread, as a slow store would.

use bytes::Bytes;
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError, StoreFuture,
    Swap, Swapped, Timestamp,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where the points are armed.
const VARIABLE: &str = "FAILPOINTS";

/// The store, with points around its calls if any is armed.
///
/// # Errors
/// What is armed is not written as it should be.
pub(crate) fn around(store: Arc<dyn Store>) -> Result<Arc<dyn Store>, String> {
    let Some(armed) = std::env::var(VARIABLE).ok().filter(|armed| !armed.is_empty()) else {
        return Ok(store);
    };
    for point in armed.split(';') {
        let (name, action) = point
            .split_once('=')
            .ok_or_else(|| format!("{VARIABLE}: {point:?} is not of the form point=action"))?;
        fail::cfg(name, action).map_err(|error| format!("{VARIABLE}: {point:?}: {error}"))?;
    }
    tracing::warn!(armed, "fail points are active: this process fails on purpose");
    Ok(Arc::new(FailingStore(store)))
}

static WENT_OFF: AtomicBool = AtomicBool::new(false);

struct FailingStore(Arc<dyn Store>);

/// On which side of a call a point is.
#[derive(Clone, Copy)]
enum Side {
    Before,
    After,
}

async fn reach(point: &str, side: Side) -> Result<(), StoreError> {
    // The crate's own `sleep` would hold up the thread, and with it every other request.
    let Some(word) = fail::eval(point, Option::unwrap_or_default) else { return Ok(()) };
    if !WENT_OFF.swap(true, Ordering::Relaxed) {
        tracing::warn!(point, "a fail point was triggered; later ones are not logged");
    }
    match word.strip_prefix("delay:").map(str::parse) {
        Some(Ok(milliseconds)) => {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            Ok(())
        }
        _ => Err(match side {
            Side::Before => StoreError::Unavailable(format!("the fail point {point}")),
            Side::After => StoreError::Lost(format!("the fail point {point}")),
        }),
    }
}

macro_rules! between_points {
    ($call:literal, $answer:expr) => {
        Box::pin(async move {
            reach(concat!("store::", $call, "::before"), Side::Before).await?;
            let answer = $answer.await?;
            reach(concat!("store::", $call, "::after"), Side::After).await?;
            Ok(answer)
        })
    };
}

impl Store for FailingStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        between_points!("create", self.0.create(batch))
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        between_points!("swap", self.0.swap(batch))
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        between_points!("remove", self.0.remove(batch))
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        between_points!("read", self.0.read(keys))
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        between_points!("find", self.0.find(ids))
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        between_points!("history", self.0.history(id))
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        between_points!("list", self.0.list(filter, from, limit))
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        between_points!("count_live", self.0.count_live(tenant, at_most))
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        between_points!("live_operations", self.0.live_operations(newest))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        between_points!("due", self.0.due(query))
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        between_points!("drop_answers", self.0.drop_answers(at_most))
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        between_points!("purge", self.0.purge(at_most))
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        between_points!("remember", self.0.remember(name, value))
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        between_points!("recall", self.0.recall(name))
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        self.0.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        between_points!("replace", self.0.replace(name, expected, value))
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        between_points!("set_key_format", self.0.set_key_format(format, respell))
    }

    fn audit(
        &self,
        entry: semel::audit::AuditEntry,
        change: Option<Swap>,
    ) -> StoreFuture<'_, Answer<Swapped>> {
        between_points!("audit", self.0.audit(entry, change))
    }

    fn audited(
        &self,
        filter: semel::audit::AuditFilter,
        from: Option<semel::audit::AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, semel::audit::AuditPage> {
        between_points!("audited", self.0.audited(filter, from, limit))
    }

    fn purge_audit(&self, older_than: std::time::Duration, at_most: usize) -> StoreFuture<'_, u64> {
        between_points!("purge_audit", self.0.purge_audit(older_than, at_most))
    }

    fn max_concurrent_batches(&self) -> usize {
        self.0.max_concurrent_batches()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use semel::MemoryStore;

    #[tokio::test]
    async fn a_point_goes_off_on_its_side_of_the_call_as_often_as_it_says() {
        let store = FailingStore(Arc::new(MemoryStore::new()));
        fail::cfg("store::remember::before", "1*return(error)").unwrap();
        let failed = store.remember("name".into(), Bytes::from_static(b"first")).await;
        assert!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
        assert_eq!(store.recall("name".into()).await.unwrap(), None, "nothing was done");

        fail::cfg("store::remember::after", "1*return(error)").unwrap();
        let failed = store.remember("name".into(), Bytes::from_static(b"second")).await;
        assert!(matches!(failed, Err(StoreError::Lost(_))), "{failed:?}");
        assert_eq!(
            store.recall("name".into()).await.unwrap().as_deref(),
            Some(&b"second"[..]),
            "it was done"
        );
        store.remember("name".into(), Bytes::from_static(b"third")).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_delay_keeps_the_call_waiting_and_nothing_else() {
        let store = FailingStore(Arc::new(MemoryStore::new()));
        fail::cfg("store::due::before", "return(delay:300)").unwrap();
        let begun = tokio::time::Instant::now();
        store.list(Filter::default(), None, 1).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::ZERO);
        let query = DueQuery { kind: semel::DueKind::Lease, after: None, limit: 1 };
        store.due(query).await.unwrap();
        assert_eq!(begun.elapsed(), Duration::from_millis(300));
    }
}
