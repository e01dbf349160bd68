//! One instance's connection, and the calls over it.

use super::contents::Contents;
use super::disk::{Disk, Write};
use super::pauses::Known;
use super::weather::{Call, Weather};
use crate::machine::Machine;
use bytes::Bytes;
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::clock::{Clock as _, ClockReport, ClockRequest, Keeper, Mark, Told};
use semel::{
    Answer, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    LiveOperations, Now, OperationId, Page, Purged, Record, RecordKey, Respell, Store, StoreError,
    StoreFuture, Swap, Swapped, Timestamp, check_draft,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an instance waits for a look at the clock.
const LOOKS_FOR: Duration = Duration::from_secs(5);

/// One instance's connection to a [`Disk`].
#[derive(Clone)]
pub struct SimulatedStore {
    disk: Disk,
    /// Where the instance runs. Its time of day is not asked for, which is the disk's.
    host: Machine,
    instance: usize,
    keeper: Arc<Mutex<Keeper>>,
    weather: Option<Weather>,
    known: Arc<Known>,
}

impl SimulatedStore {
    /// A connection without faults.
    #[must_use]
    pub fn open(disk: &Disk, instance: usize) -> Self {
        Self::connect(disk, &disk.0.machine, instance, None)
    }

    pub(crate) fn connect(disk: &Disk, host: &Machine, instance: usize, weather: Option<Weather>) -> Self {
        // Zero is nobody.
        let process = i64::try_from(instance).unwrap_or(i64::MAX).saturating_add(1);
        let keeper = Arc::new(Mutex::new(Keeper::new(disk.0.terms, process)));
        let known = Arc::new(Known::from_now(host));
        let store = Self { disk: disk.clone(), host: host.clone(), instance, keeper, weather, known };
        // As a real one does, it leaves a mark when it is opened. One that does not reach the store is opened by its first call.
        if store.weather.as_ref().is_none_or(Weather::is_open) {
            let _ = store.look(|_| false);
        }
        store
    }

    /// Carries a call out, whole: no await, no fault.
    fn carry_out<T>(
        &self,
        work: impl FnOnce(&mut Contents, Now) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut contents = self.disk.contents();
        let (told, hidden) = self.judge(contents.mark());
        if told.wrong.is_some() {
            return Err(StoreError::Unavailable("this process's clock is far from the store's".into()));
        }
        if let Some(audit) = &self.disk.0.audit {
            audit.judged(self.instance, told.now, hidden);
        }
        let before = contents.position();
        let done = work(&mut contents, told.now)?;
        if contents.position() != before || told.mark.behind != contents.mark().behind {
            contents.set_mark(told.mark);
        }
        Ok(done)
    }

    fn call<'a, T: Send + 'static>(
        &'a self,
        name: impl Into<Call>,
        work: impl FnOnce(&Self, &mut Contents, Now) -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        let store = self.clone();
        self.through(name, move || store.carry_out(|contents, now| work(&store, contents, now)))
    }

    /// Has something carried out at the store, with whatever happens to it on the way.
    fn through<'a, T: Send + 'static>(
        &'a self,
        call: impl Into<Call>,
        carry_out: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
    ) -> StoreFuture<'a, T> {
        match &self.weather {
            None => Box::pin(async move { carry_out() }),
            Some(weather) => Box::pin(weather.clone().around(self.disk.clone(), call.into(), carry_out)),
        }
    }

    /// Looks at the clock as production instances do every so often: leaves a mark, and ends a hold that the kernel vouches for.
    pub(crate) async fn tend(&self) {
        let period = (self.disk.0.terms.hold / 10).clamp(Duration::from_millis(100), Duration::from_secs(60));
        loop {
            tokio::time::sleep(period).await;
            let store = self.clone();
            let may_end = move |keeper: &mut Keeper| {
                let synchronised = store.disk.0.machine.synchronised() == Some(true);
                keeper.watch(synchronised, store.host.boottime(), period * 3)
            };
            let store = self.clone();
            let looking = self.through("clock", move || store.look(may_end));
            let _ = tokio::time::timeout(LOOKS_FOR, looking).await;
        }
    }

    /// Leaves a mark. `accepts`: what the clock claims is the time. Whether that changed anything.
    fn look(&self, accepts: impl FnOnce(&mut Keeper) -> bool) -> Result<(ClockReport, bool), StoreError> {
        let accept = accepts(&mut self.keeper());
        let machine = self.disk.0.machine.clone();
        let mut contents = self.disk.contents();
        let (mut told, _) = self.judge(contents.mark());
        let mut is_followed = false;
        contents.set_mark(told.mark);
        if accept && told.wrong.is_some() {
            self.keeper().accept_behind();
            (told, _) = self.judge(contents.mark());
            contents.set_mark(told.mark);
            is_followed = told.wrong.is_none();
        } else if accept && told.now.is_held() {
            let accepted = self.keeper().accepting(&told);
            contents.set_mark(accepted);
            (told, _) = self.judge(accepted);
            is_followed = true;
        }
        let mut report = ClockReport::trusted(told.now.earliest, self.disk.0.terms);
        report.latest = told.now.latest;
        report.claimed = Timestamp::from_millis(machine.wall_millis());
        report.synchronised = machine.synchronised();
        report.wrong = told
            .wrong
            .map(|_| "the clock is far from the store's: put it right, or say `semel clock accept`".into());
        Ok((report, is_followed))
    }

    /// What this instance believes of the clock, given the store's row; and how much of what its machine stood still it cannot know.
    fn judge(&self, row: Mark) -> (Told, i64) {
        let told = self.keeper().judge(row, &self.host.readings_of(&self.disk.0.machine));
        if let (Some(turn), Some(audit)) = (told.turn, &self.disk.0.audit) {
            audit.turned(self.instance, turn);
        }
        let machines = (&self.host, &self.disk.0.machine);
        let max_step = self.disk.0.terms.max_step;
        let hidden = self.disk.0.pauses.hidden(&self.known, machines, row, &told, max_step);
        (told, hidden)
    }

    fn audit(&self, write: &Write<'_>, now: Now) {
        if let Some(audit) = &self.disk.0.audit {
            audit.wrote(self.instance, write, now);
        }
    }

    fn is_locked(&self) -> bool {
        self.weather.as_ref().is_some_and(Weather::locks)
    }

    fn keeper(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for SimulatedStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        let ids = batch.iter().map(|draft| draft.operation_id).collect();
        self.call(Call::about("create", ids), move |store, contents, now| {
            batch.iter().try_for_each(check_draft)?;
            batch.iter().try_for_each(|draft| contents.check_format(draft))?;
            let create = |draft: Draft| {
                if store.is_locked() {
                    return Created::Locked;
                }
                let created = contents.create(&draft, now);
                if created == Created::Inserted {
                    let write = Write {
                        key: &draft.key,
                        before: None,
                        draft: Some(&draft),
                        history: None,
                        carries_damage: false,
                    };
                    store.audit(&write, now);
                } else if let (Created::Exists(record), Some(audit)) = (&created, &store.disk.0.audit) {
                    audit.found(draft.owner, record, now);
                }
                created
            };
            Ok(Answer::at(now, batch.into_iter().map(create).collect()))
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        let ids = batch.iter().map(|swap| swap.expected.operation_id).collect();
        self.call(Call::about("swap", ids), move |store, contents, now| {
            batch.iter().try_for_each(Swap::check)?;
            let swap = |swap: Swap| {
                if store.is_locked() {
                    return Swapped::Locked;
                }
                let (before, carries_damage) = contents.as_read(&swap);
                let swapped = contents.swap(&swap, now);
                if swapped == Swapped::Done {
                    let (draft, history) = (Some(&*swap.next), swap.history.as_ref());
                    let write = Write {
                        key: &swap.next.key,
                        before: before.as_ref(),
                        draft,
                        history,
                        carries_damage,
                    };
                    store.audit(&write, now);
                } else if let (Swapped::Changed(_), Some(audit)) = (&swapped, &store.disk.0.audit) {
                    audit.overtaken();
                }
                swapped
            };
            Ok(Answer::at(now, batch.into_iter().map(swap).collect()))
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        let ids = batch.iter().map(|expected| expected.operation_id).collect();
        self.call(Call::about("remove", ids), move |store, contents, now| {
            let remove = |expected: Expected| {
                if store.is_locked() {
                    return Swapped::Locked;
                }
                let before = contents.record(&expected.key).cloned();
                let removed = contents.remove(&expected);
                if removed == Swapped::Done {
                    let write = Write {
                        key: &expected.key,
                        before: before.as_ref(),
                        draft: None,
                        history: None,
                        carries_damage: false,
                    };
                    store.audit(&write, now);
                }
                removed
            };
            Ok(Answer::at(now, batch.into_iter().map(remove).collect()))
        })
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.call("read", move |_, contents, now| {
            Ok(Answer::at(now, keys.iter().map(|key| contents.read(key)).collect::<Result<_, _>>()?))
        })
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        self.call(Call::about("find", ids.clone()), move |_, contents, now| {
            Ok(Answer::at(now, ids.iter().map(|id| contents.find(*id)).collect::<Result<_, _>>()?))
        })
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        self.call(Call::about("history", vec![id]), move |_, contents, _| Ok(contents.history(id)))
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        self.call("list", move |_, contents, now| {
            let from = from.as_ref().map(Cursor::place).transpose()?;
            Ok(contents.list(&filter, from, limit, now))
        })
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        self.call("count_live", move |_, contents, now| Ok(contents.count_live(&tenant, at_most, now)))
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        self.call("live_operations", move |_, contents, now| Ok(contents.live_operations(newest, now)))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        self.call("due", move |_, contents, now| Ok(Answer::at(now, contents.due(&query, now))))
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        self.call("drop_answers", move |_, contents, now| {
            Ok(Answer::at(now, contents.drop_answers(at_most, now)))
        })
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        self.call("purge", move |store, contents, now| {
            let purged = contents.purge(at_most, now);
            let removed = purged.into_iter().map(|(since, before)| {
                let write = Write {
                    key: &before.key,
                    before: Some(&before),
                    draft: None,
                    history: None,
                    carries_damage: false,
                };
                store.audit(&write, now);
                Purged { operation: before.key.operation.clone(), since }
            });
            Ok(Answer::at(now, removed.collect()))
        })
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        self.call("remember", move |_, contents, _| Ok(contents.remember(name, value)))
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.call("recall", move |_, contents, _| Ok(contents.recall(&name)))
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        let store = self.clone();
        self.through("clock", move || {
            let (report, is_followed) = store.look(|_| request == ClockRequest::Accept)?;
            if let (true, Some(audit)) = (is_followed, &store.disk.0.audit) {
                audit.accepted(store.disk.0.machine.off(), report.earliest);
            }
            Ok(report)
        })
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.call("replace", move |_, contents, _| Ok(contents.replace(&name, &expected, value)))
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.call("set_key_format", move |_, contents, now| {
            contents.set_key_format(format, respell.as_ref(), now)
        })
    }

    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        self.call("audit", move |_, contents, now| {
            change.iter().try_for_each(Swap::check)?;
            let swapped = change.map_or(Swapped::Done, |swap| contents.swap(&swap, now));
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
        self.call("audited", move |_, contents, _| {
            let page = contents.audit.page(&filter, from.as_ref(), limit);
            page.ok_or_else(|| StoreError::Unavailable("a cursor from elsewhere".into()))
        })
    }

    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64> {
        self.call("purge_audit", move |_, contents, now| {
            let before = now.earliest.minus(older_than);
            Ok(if now.is_held() { 0 } else { contents.audit.purge(before, at_most) })
        })
    }

    fn max_concurrent_batches(&self) -> usize {
        self.weather.as_ref().map_or(1, Weather::max_concurrent_batches)
    }
}
