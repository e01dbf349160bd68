//! A store that fails as it is told to, and counts what it is asked for.

use bytes::Bytes;
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError, StoreFuture,
    Swap, Swapped, Timestamp,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// A place where somebody stops until a test lets them go on.
pub struct Gate {
    reached: Semaphore,
    opened: Semaphore,
}

impl Gate {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { reached: Semaphore::new(0), opened: Semaphore::new(0) })
    }

    /// Says that it was reached, and waits for it to be opened.
    pub async fn pass(&self) {
        self.reached.add_permits(1);
        self.opened.acquire().await.unwrap().forget();
    }

    /// Waits until somebody stands at it; if nobody comes, the test has failed.
    pub async fn reached(&self) {
        let reaching = tokio::time::timeout(Duration::from_secs(30), self.reached.acquire());
        reaching.await.unwrap().unwrap().forget();
    }

    /// Lets one pass.
    pub fn open(&self) {
        self.opened.add_permits(1);
    }

    /// Lets everybody pass from now on.
    pub fn open_for_good(&self) {
        self.opened.add_permits(1 << 20);
    }
}

/// What a store is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Call {
    Create,
    Swap,
    Remove,
    Read,
    Count,
    Remember,
    Recall,
    Replace,
    SetKeyFormat,
    Audit,
}

/// What happens to one call.
#[derive(Clone)]
pub enum Fault {
    /// Nothing special.
    None,
    /// Nothing is done, and that is said.
    Unavailable,
    /// It is done, and nobody is told.
    LostAnswer,
    /// Nothing is done, and nobody can know.
    LostCall,
    /// Nobody can know, and it is done once the gate opens.
    Late(Arc<Gate>),
    /// Nothing is done, and no answer comes, ever.
    Hang,
    /// It is done once the gate opens, and answered then.
    Held(Arc<Gate>),
    /// It is done, and its answer is held at the gate.
    HeldAnswer(Arc<Gate>),
    /// A bug in the store.
    Panic,
    /// A bug in the store, once the gate opens.
    PanicAt(Arc<Gate>),
}

/// A store in front of another one.
#[derive(Clone)]
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Arc<Mutex<Plan>>,
    lanes: usize,
}

#[derive(Default)]
struct Plan {
    next: HashMap<Call, VecDeque<Fault>>,
    always: HashMap<Call, Fault>,
    damaged: Option<RecordKey>,
    batches: Vec<(Call, usize)>,
}

impl FaultyStore {
    pub fn over(inner: impl Store) -> Self {
        let lanes = inner.max_concurrent_batches();
        Self { inner: Arc::new(inner), plan: Arc::default(), lanes }
    }

    /// The same store, if it could work on so many batches at once.
    pub fn with_max_concurrent_batches(mut self, lanes: usize) -> Self {
        self.lanes = lanes;
        self
    }

    /// The next calls of this kind fare like this, one after the other.
    pub fn next(&self, call: Call, faults: impl IntoIterator<Item = Fault>) {
        self.plan.lock().unwrap().next.entry(call).or_default().extend(faults);
    }

    /// Every call of this kind fares like this, until told otherwise.
    pub fn always(&self, call: Call, fault: Fault) {
        self.plan.lock().unwrap().always.insert(call, fault);
    }

    /// From now on nothing fails.
    pub fn heal(&self) {
        let mut plan = self.plan.lock().unwrap();
        plan.next.clear();
        plan.always.clear();
    }

    /// Whoever creates this record finds it damaged.
    pub fn damage(&self, key: &RecordKey) {
        self.plan.lock().unwrap().damaged = Some(key.clone());
    }

    /// The sizes of the batches of this kind that were begun.
    pub fn batches(&self, call: Call) -> Vec<usize> {
        let plan = self.plan.lock().unwrap();
        plan.batches.iter().filter(|(kind, _)| *kind == call).map(|(_, size)| *size).collect()
    }

    /// Every batch that was begun, of whatever kind, with its size, in order.
    pub fn asked_for(&self) -> Vec<(Call, usize)> {
        self.plan.lock().unwrap().batches.clone()
    }

    fn faring<'a, T: Send + 'static>(
        &'a self,
        call: Call,
        size: usize,
        act: impl FnOnce(Arc<dyn Store>) -> StoreFuture<'static, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            let fault = {
                let mut plan = self.plan.lock().unwrap();
                plan.batches.push((call, size));
                let next = plan.next.get_mut(&call).and_then(VecDeque::pop_front);
                next.or_else(|| plan.always.get(&call).cloned()).unwrap_or(Fault::None)
            };
            let acting = act(Arc::clone(&self.inner));
            let lost = || StoreError::Lost("as told".into());
            match fault {
                Fault::None => acting.await,
                Fault::Unavailable => Err(StoreError::Unavailable("as told".into())),
                Fault::LostAnswer => acting.await.and_then(|_| Err(lost())),
                Fault::LostCall => Err(lost()),
                Fault::Late(gate) => {
                    tokio::spawn(async move {
                        gate.pass().await;
                        drop(acting.await);
                        gate.reached.add_permits(1);
                    });
                    Err(lost())
                }
                Fault::Hang => std::future::pending().await,
                Fault::Held(gate) => {
                    gate.pass().await;
                    acting.await
                }
                Fault::HeldAnswer(gate) => {
                    let answer = acting.await;
                    gate.pass().await;
                    answer
                }
                Fault::Panic => panic!("as told"),
                Fault::PanicAt(gate) => {
                    gate.pass().await;
                    panic!("as told")
                }
            }
        })
    }
}

/// Runs a call on a store that is kept alive for as long as the call takes.
macro_rules! on {
    ($method:ident ( $($argument:expr),* )) => {
        move |store: Arc<dyn Store>| Box::pin(async move { store.$method($($argument),*).await })
    };
}

impl Store for FaultyStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        let damaged = self.plan.lock().unwrap().damaged.clone();
        if damaged.is_some_and(|key| batch.iter().any(|draft| draft.key == key)) {
            self.plan.lock().unwrap().batches.push((Call::Create, batch.len()));
            return Box::pin(async { Err(StoreError::Damaged("as told".into())) });
        }
        self.faring(Call::Create, batch.len(), on!(create(batch)))
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        self.faring(Call::Swap, batch.len(), on!(swap(batch)))
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        self.faring(Call::Remove, batch.len(), on!(remove(batch)))
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.faring(Call::Read, keys.len(), on!(read(keys)))
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
        self.faring(Call::Count, 1, on!(live_operations(newest)))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        self.inner.due(query)
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        self.faring(Call::Count, 1, on!(count_live(tenant, at_most)))
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        self.inner.drop_answers(at_most)
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        self.inner.purge(at_most)
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        self.faring(Call::Remember, 1, on!(remember(name, value)))
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.faring(Call::Recall, 1, on!(recall(name)))
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        self.inner.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.faring(Call::Replace, 1, on!(replace(name, expected, value)))
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.faring(Call::SetKeyFormat, 1, on!(set_key_format(format, respell)))
    }

    fn audit(
        &self,
        entry: semel::audit::AuditEntry,
        change: Option<Swap>,
    ) -> StoreFuture<'_, Answer<Swapped>> {
        self.faring(Call::Audit, 1, on!(audit(entry, change)))
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
        self.lanes
    }
}
