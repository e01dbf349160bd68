//! A store in memory, for tests: what it holds is gone with the process.

mod key_format;

use crate::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage, AuditTable};
use crate::clock::{ClockReport, ClockRequest, Terms};
use crate::history::{HistoryEntry, HistoryLine};
use crate::identity::{OperationId, RecordKey};
use crate::record::{Body, Draft, DueKind, Expected, Record, State, StoredResponse};
use crate::store::{
    Answer, Created, Cursor, DueQuery, Filter, KeyFormat, KeyFormatSet, LiveOperations, Page, Purged,
    Respell, Store, StoreError, StoreFuture, Swap, Swapped, check_draft,
};
use crate::time::{Now, Timestamp};
use crate::transition::state_at;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A [`Store`] in memory. **Not durable**: a restart forgets every key, and a retry that comes after it executes again.
///
/// For tests and for trying things out; creating it logs a warning. It is also the reference that durable
/// stores are compared with: one lock, plain maps, nothing clever. It grows until its records are reaped and has no bound
/// of its own. Clones share what they hold; [`list`](Store::list) and [`due`](Store::due) look at every record.
///
/// ```
/// use semel::{ManualClock, MemoryStore, Store, Timestamp};
/// use std::time::Duration;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let clock = ManualClock::at(Timestamp::from_millis(1_000));
/// let store = MemoryStore::with_clock(clock.clone());
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(store.read(vec![]).await?.now, Timestamp::from_millis(31_000));
/// # Ok::<(), semel::StoreError>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

/// A clock that stands still until a test moves it. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Hands>);

#[derive(Debug)]
struct Hands {
    now: AtomicI64,
    /// By how much the clock claims to be further: it jumped, and is not believed.
    ahead: AtomicI64,
    /// When a hold was ended last.
    accepted: AtomicI64,
}

impl ManualClock {
    /// A clock that says `moment`.
    #[must_use]
    pub fn at(moment: Timestamp) -> Self {
        let (now, ahead) = (AtomicI64::new(moment.as_millis()), AtomicI64::new(0));
        Self(Arc::new(Hands { now, ahead, accepted: AtomicI64::new(i64::MIN) }))
    }

    /// What it says.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.now.load(Ordering::SeqCst))
    }

    /// Has the clock jump ahead by so much, without time passing: a clock hold is open until it [comes back](Self::come_back), or an operator
    /// [accepts](ClockRequest::Accept) the time that it claims.
    pub fn jump(&self, by: Duration) {
        self.0.ahead.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Puts a clock right that jumped.
    pub fn come_back(&self) {
        self.0.ahead.store(0, Ordering::SeqCst);
    }

    fn ahead(&self) -> Duration {
        Duration::from_millis(self.0.ahead.load(Ordering::SeqCst).unsigned_abs())
    }

    fn accept(&self) {
        let ahead = self.0.ahead.swap(0, Ordering::SeqCst);
        if ahead > 0 {
            let now = self.0.now.fetch_add(ahead, Ordering::SeqCst).saturating_add(ahead);
            self.0.accepted.store(now, Ordering::SeqCst);
        }
    }

    /// How long it has run since a hold was ended.
    fn steady(&self) -> Duration {
        match self.0.accepted.load(Ordering::SeqCst) {
            i64::MIN => Duration::MAX,
            accepted => self.now().after(Timestamp::from_millis(accepted)),
        }
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// Sets the clock, back as well: a store has to stand that, and its own time stands still meanwhile.
    pub fn set(&self, moment: Timestamp) {
        self.0.now.store(moment.as_millis(), Ordering::SeqCst);
    }
}

#[derive(Debug)]
enum Clock {
    /// The wall clock at the start, carried on by the monotonic one: setting the machine's clock moves nothing.
    Machine {
        start: Timestamp,
        since: Instant,
    },
    Manual(ManualClock),
}

impl Clock {
    fn now(&self) -> Timestamp {
        match self {
            Self::Machine { start, since } => start.plus(since.elapsed()),
            Self::Manual(clock) => clock.now(),
        }
    }

    /// The time, if it is no earlier than this by now.
    fn from(&self, now: Timestamp) -> Now {
        match self {
            Self::Machine { .. } => now.into(),
            Self::Manual(clock) => {
                let since = Timestamp::from_millis(clock.0.accepted.load(Ordering::SeqCst));
                Now { earliest: now, latest: now.plus(clock.ahead()), steady: clock.steady(), since }
            }
        }
    }
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    contents: Mutex<Contents>,
}

#[derive(Debug)]
struct Contents {
    /// The highest time returned so far.
    now: Timestamp,
    /// Counts creations: the order of listings.
    created: i64,
    /// By what a record is the only one of.
    records: BTreeMap<RecordKey, Kept>,
    keys: HashMap<OperationId, RecordKey>,
    remembered: HashMap<String, Bytes>,
    audit: AuditTable,
    /// The key format that new records must have; `None` until it is set.
    sealed_keys: Option<bool>,
}

/// History lives beside its record, so that one removal takes both.
#[derive(Debug)]
struct Kept {
    record: Record,
    history: Vec<HistoryLine>,
    place: i64,
}

impl MemoryStore {
    /// An empty store on the machine's clock.
    #[must_use]
    pub fn new() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let start = Timestamp::from_millis(0).plus(since_1970);
        Self::on(Clock::Machine { start, since: Instant::now() })
    }

    /// An empty store whose time is moved by hand.
    #[must_use]
    pub fn with_clock(clock: ManualClock) -> Self {
        Self::on(Clock::Manual(clock))
    }

    fn on(clock: Clock) -> Self {
        tracing::warn!("memory store: NOT DURABLE, a restart forgets every idempotency key");
        let contents = Contents {
            now: Timestamp::from_millis(i64::MIN),
            created: 0,
            records: BTreeMap::new(),
            keys: HashMap::new(),
            remembered: HashMap::new(),
            audit: AuditTable::default(),
            sealed_keys: None,
        };
        Self { shared: Arc::new(Shared { clock, contents: Mutex::new(contents) }) }
    }

    /// The contents, and the time: read under the lock, so that it never goes back from one holder to the next.
    fn lock(&self) -> (MutexGuard<'_, Contents>, Now) {
        let mut contents = self.shared.contents.lock().unwrap_or_else(PoisonError::into_inner);
        contents.now = contents.now.max(self.shared.clock.now());
        let now = self.shared.clock.from(contents.now);
        (contents, now)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl Contents {
    fn create(&mut self, draft: Draft, now: Now) -> Created {
        let unique = draft.key.unique();
        if let Some(kept) = self.records.get(&unique) {
            return Created::Exists(Box::new(kept.record.clone()));
        }
        let record = by_itself(draft.at(now));
        self.created += 1;
        self.keys.insert(record.operation_id, unique.clone());
        let kept = Kept { record, history: Vec::new(), place: self.created };
        self.records.insert(unique, kept);
        Created::Inserted
    }

    fn swap(&mut self, swap: Swap, now: Now) -> Swapped {
        let kept = match self.expected(&swap.expected) {
            Ok(kept) => kept,
            Err(otherwise) => return otherwise,
        };
        kept.record = by_itself(swap.next.at(now));
        let version = kept.record.version;
        kept.history.extend(swap.history.map(|entry: HistoryEntry| HistoryLine {
            at: now.earliest,
            version,
            entry,
        }));
        Swapped::Done
    }

    fn remove(&mut self, expected: &Expected) -> Swapped {
        if let Err(otherwise) = self.expected(expected) {
            return otherwise;
        }
        self.keys.remove(&expected.operation_id);
        self.records.remove(&expected.key.unique());
        Swapped::Done
    }

    fn expected(&mut self, expected: &Expected) -> Result<&mut Kept, Swapped> {
        match self.records.get_mut(&expected.key.unique()) {
            None => Err(Swapped::Missing),
            Some(kept) if kept.record.expected() == *expected => Ok(kept),
            Some(kept) => Err(Swapped::Changed(Box::new(kept.record.clone()))),
        }
    }

    /// What waits for something that is due, earliest first, with the moment of each.
    fn due(&self, query: &DueQuery, now: Now) -> Vec<(Timestamp, &Record)> {
        if now.is_held() && matches!(query.kind, DueKind::Window | DueKind::Purge) {
            return Vec::new();
        }
        let mut due: Vec<((Timestamp, OperationId), &Record)> = self
            .records
            .values()
            .filter_map(|kept| {
                let (kind, at) = kept.record.due()?;
                let wanted = kind == query.kind && at.has_come(now.earliest);
                wanted.then_some(((at, kept.record.operation_id), &kept.record))
            })
            .filter(|(place, _)| query.after.is_none_or(|after| *place > after))
            .collect();
        due.sort_by_key(|(place, _)| *place);
        due.truncate(query.limit);
        due.into_iter().map(|((at, _), record)| (at, record)).collect()
    }

    fn find(&self, id: OperationId) -> Option<&Kept> {
        self.keys.get(&id).and_then(|key| self.records.get(key))
    }
}

/// The record with bytes of its own. Those of an answer are mostly a small part of what was read from a socket at once, which would be held
/// for as long as they are, and may be counted as long as they last.
fn by_itself(mut record: Record) -> Record {
    let own = |bytes: &mut Bytes| *bytes = Bytes::copy_from_slice(bytes);
    record.checkpoint.iter_mut().for_each(own);
    if let Some(response) = &mut record.response {
        response.headers.iter_mut().for_each(|(_, value)| own(value));
        if let Body::Stored(bytes) | Body::Sealed(bytes) = &mut response.body {
            own(bytes);
        }
    }
    record
}

fn without_body(record: &Record) -> Record {
    let mut record = record.clone();
    if let Some(response) = &mut record.response {
        response.headers.clear();
        if response.body.is_kept() {
            response.body = Body::Omitted;
        }
    }
    record
}

fn passes(filter: &Filter, record: &Record, now: Timestamp) -> bool {
    let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    filter.state.is_none_or(|state| state == state_at(record, now))
        && is(&filter.tenant, &record.key.tenant)
        && is(&filter.operation, &record.key.operation)
        && is(&filter.key, &record.key.key)
        && filter.dead_letter.is_none_or(|dead_letter| dead_letter == record.dead_letter)
        && filter.created_from.is_none_or(|from| record.times.created >= from)
        && filter.created_until.is_none_or(|until| record.times.created < until)
}

// Each call is one critical section without an await: atomic, and nothing is done before the future is polled.
impl Store for MemoryStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        Box::pin(async move {
            batch.iter().try_for_each(check_draft)?;
            let (mut contents, now) = self.lock();
            batch.iter().try_for_each(|draft| contents.check_format(draft))?;
            Ok(Answer::at(now, batch.into_iter().map(|draft| contents.create(draft, now)).collect()))
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            batch.iter().try_for_each(Swap::check)?;
            let (mut contents, now) = self.lock();
            Ok(Answer::at(now, batch.into_iter().map(|swap| contents.swap(swap, now)).collect()))
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            let (mut contents, now) = self.lock();
            Ok(Answer::at(now, batch.iter().map(|expected| contents.remove(expected)).collect()))
        })
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            let (contents, now) = self.lock();
            let read = |key: &RecordKey| contents.records.get(&key.unique()).map(|kept| kept.record.clone());
            Ok(Answer::at(now, keys.iter().map(read).collect()))
        })
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            let (contents, now) = self.lock();
            let find = |id| contents.find(id).map(|kept| kept.record.clone());
            Ok(Answer::at(now, ids.into_iter().map(find).collect()))
        })
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        Box::pin(async move {
            let (contents, _) = self.lock();
            Ok(contents.find(id).map(|kept| kept.history.clone()).unwrap_or_default())
        })
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        Box::pin(async move {
            let from = from.map(|cursor| cursor.place()).transpose()?;
            let (contents, now) = self.lock();
            let mut found: Vec<&Kept> = contents
                .records
                .values()
                .filter(|kept| {
                    from.is_none_or(|place| match filter.oldest_first {
                        true => kept.place > place,
                        false => kept.place < place,
                    })
                })
                .filter(|kept| passes(&filter, &kept.record, now.earliest))
                .collect();
            found.sort_by_key(|kept| if filter.oldest_first { kept.place } else { -kept.place });
            let more = found.len() > limit;
            found.truncate(limit);
            let next = found.last().filter(|_| more).map(|kept| Cursor::of_place(kept.place));
            let records = found.into_iter().map(|kept| without_body(&kept.record)).collect();
            Ok(Page { records, damaged: 0, next })
        })
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (contents, now) = self.lock();
            let live = contents.records.values().map(|kept| &kept.record).filter(|record| {
                *record.key.tenant == *tenant && state_at(record, now.latest) != State::Expired
            });
            Ok(live.zip(0..at_most).count() as u64)
        })
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        Box::pin(async move {
            let (contents, now) = self.lock();
            let mut found: Vec<&Kept> = contents.records.values().collect();
            found.sort_by_key(|kept| std::cmp::Reverse(kept.place));
            let mut live = LiveOperations { is_all: found.len() < newest, ..LiveOperations::default() };
            for Kept { record, .. } in found.into_iter().take(newest) {
                if state_at(record, now.earliest) != State::Expired {
                    let RecordKey { operation, scope, .. } = &record.key;
                    *live.operations.entry((operation.to_string(), *scope)).or_default() += 1;
                }
            }
            Ok(live)
        })
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        Box::pin(async move {
            let (contents, now) = self.lock();
            let items =
                contents.due(&query, now).into_iter().map(|(_, record)| without_body(record)).collect();
            Ok(Answer::at(now, items))
        })
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        Box::pin(async move {
            let (mut contents, now) = self.lock();
            let mut over: Vec<(Timestamp, &mut StoredResponse)> = contents
                .records
                .values_mut()
                .filter_map(|kept| Some((kept.record.answer_ends()?, kept.record.response.as_mut()?)))
                .filter(|(end, response)| {
                    !now.is_held() && end.has_come(now.earliest) && response.has_droppable()
                })
                .collect();
            over.sort_by_key(|(end, _)| *end);
            over.truncate(at_most);
            let drop = |(end, response): (Timestamp, &mut StoredResponse)| {
                response.headers.clear();
                if response.body.is_kept() {
                    response.body = Body::Dropped;
                }
                end
            };
            Ok(Answer::at(now, over.into_iter().map(drop).collect()))
        })
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        Box::pin(async move {
            let (mut contents, now) = self.lock();
            let query = DueQuery { kind: DueKind::Purge, after: None, limit: at_most };
            let over = contents.due(&query, now).into_iter();
            let over: Vec<_> = over.map(|(since, record)| (since, record.expected())).collect();
            let purge = |(since, expected): (Timestamp, Expected)| {
                contents.remove(&expected);
                Purged { operation: expected.key.operation, since }
            };
            Ok(Answer::at(now, over.into_iter().map(purge).collect()))
        })
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        Box::pin(async move {
            let (mut contents, _) = self.lock();
            Ok(contents.remembered.entry(name).or_insert(value).clone())
        })
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let (contents, _) = self.lock();
            Ok(contents.remembered.get(&name).cloned())
        })
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        Box::pin(async move {
            if let (ClockRequest::Accept, Clock::Manual(clock)) = (request, &self.shared.clock) {
                clock.accept();
            }
            let (_contents, now) = self.lock();
            let mut report = ClockReport::trusted(now.earliest, Terms::default());
            (report.latest, report.claimed) = (now.latest, now.latest);
            Ok(report)
        })
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let (mut contents, _) = self.lock();
            Ok(contents.remembered.get_mut(&name).map(|kept| {
                if *kept == expected {
                    *kept = value;
                }
                kept.clone()
            }))
        })
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        Box::pin(async move {
            let (mut contents, now) = self.lock();
            contents.set_key_format(format, respell.as_ref(), now.earliest)
        })
    }

    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            change.iter().try_for_each(Swap::check)?;
            let (mut contents, now) = self.lock();
            let swapped = change.map_or(Swapped::Done, |swap| contents.swap(swap, now));
            if swapped == Swapped::Done {
                contents.audit.append(now.earliest, entry);
            }
            Ok(Answer::at(now, vec![swapped]))
        })
    }

    fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, AuditPage> {
        Box::pin(async move {
            let (contents, _) = self.lock();
            let page = contents.audit.page(&filter, from.as_ref(), limit);
            page.ok_or_else(|| StoreError::Unavailable("a cursor from elsewhere".into()))
        })
    }

    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (mut contents, now) = self.lock();
            let before = now.earliest.minus(older_than);
            Ok(if now.is_held() { 0 } else { contents.audit.purge(before, at_most) })
        })
    }

    fn max_concurrent_batches(&self) -> usize {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{Fingerprint, Owner, RecipeId};
    use crate::policy::Policy;
    use crate::transition::{Act, Change, Claim, Reservation, Windows, act, reserve};

    /// Bytes of a buffer that lives as long as anything refers to it.
    struct Buffer {
        _held: Arc<()>,
    }

    impl AsRef<[u8]> for Buffer {
        fn as_ref(&self) -> &[u8] {
            b"what was read at once"
        }
    }

    #[tokio::test]
    async fn what_is_kept_does_not_hold_on_to_the_buffer_that_it_came_in() {
        let store = MemoryStore::new();
        let policy = Policy::default();
        let reservation = Reservation {
            key: RecordKey::new("acme", "create_payment", "key"),
            operation_id: OperationId::random(),
            fingerprint: Fingerprint([7; 32]),
            recipe: RecipeId([9; 16]),
            owner: Owner::random(),
        };
        let draft = reserve(reservation, &policy);
        let Answer { now, .. } = store.create(vec![draft.clone()]).await.unwrap();
        let record = draft.at(now);

        let held = Arc::new(());
        let read = Bytes::from_owner(Buffer { _held: Arc::clone(&held) });
        let response = StoredResponse {
            status: 201,
            headers: vec![("location".into(), read.slice(..4))],
            body: Body::Stored(read.slice(5..)),
            schema_version: None,
        };
        let windows = Windows::from(&policy);
        let completion = Act::Complete { response: Some(response.clone()), resource: None, windows };
        let Ok(Change::Put { next, history }) = act(&record, &Claim::of(&record), &completion) else {
            panic!("the owner may complete it")
        };
        let swapped = store.swap(vec![Swap { expected: record.expected(), next, history }]).await.unwrap();
        assert_eq!(swapped.items, [Swapped::Done]);

        let kept = store.find(vec![record.operation_id]).await.unwrap().items.remove(0).unwrap();
        assert_eq!(kept.response, Some(response), "the same bytes");
        drop((completion, read));
        assert_eq!(Arc::strong_count(&held), 1, "and bytes of its own");
    }
}
