//! The kit finds out a store that breaks a rule: each fault here is one that a store could have, and the rule named beside it
//! has to fail on it. A kit that passes everything would prove nothing.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by a panic, in its stores too")]

use bytes::Bytes;
use semel::clock::{ClockReport, ClockRequest};
use semel::{
    Answer, Body, Created, Cursor, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat, KeyFormatSet,
    KeyScope, LiveOperations, ManualClock, MemoryStore, OperationId, Page, Purged, Record, RecordKey,
    Respell, Store, StoreFuture, Swap, Swapped, Timestamp,
};
use semel_conformance::rules::{
    answers, audit, batches, clock, counting, due, expiry, fencing, fidelity, find, history, holds, leases,
    listing, purging, races, random_histories, remembering, replay, reserve, scopes,
};
use semel_conformance::{Hands, Lacking, Rule, Subject, check};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Looks first, inserts later: two requests at once both win.
    LooksBeforeItCreates,
    /// Takes a key for another one that only differs in case.
    FoldsKeys,
    /// Swaps whatever the version is.
    IgnoresTheVersion,
    /// Swaps whatever the operation is.
    IgnoresTheOperation,
    /// One item that loses takes the batch with it.
    FailsBatchesWhole,
    /// Writes the history of swaps that lose.
    TellsOfWhatDidNotHappen,
    /// Keeps the history of what was removed.
    KeepsHistory,
    /// Takes an empty body for none.
    LosesEmptyBodies,
    /// Takes header values for text.
    MendsHeaders,
    /// Lists with bodies.
    ListsBodies,
    /// Leaves out the last one of a page when it goes on.
    SkipsBetweenPages,
    /// Gives what is not due yet.
    HurriesThings,
    /// Gives more than was asked for.
    KnowsNoLimit,
    /// Believes a clock that was set back.
    GoesBackInTime,
    /// Counts moments from the caller's time, a little off.
    CountsFromElsewhere,
    /// Gives way to the second value.
    ChangesItsSecret,
    /// Finds what was removed.
    FindsTheDead,
    /// Counts keys that have expired.
    CountsTheExpired,
    /// Tells keys of operations apart that are across all of them.
    SplitsTenants,
    /// Takes a key across operations for that of the one which asks.
    RenamesOperations,
    /// Says that it drops answers, and keeps them.
    KeepsAnswers,
    /// Purges whatever is old, finished or not.
    PurgesWhatIsOld,
    /// Purges, and keeps the histories.
    PurgesRecordsAlone,
    /// Believes a clock that jumps ahead.
    BelievesJumps,
    /// Stamps windows from the earliest time that it may be.
    StampsEarly,
    /// Writes the audit of a change in a commit of its own, before.
    AuditsBefore,
    /// Removes the audit of a record with it.
    ForgetsTheAudit,
}

use Fault::*;

type Dead = (Record, Vec<HistoryLine>);

struct Broken {
    fault: Fault,
    sound: MemoryStore,
    /// What is kept of removed records by stores that do.
    dead: Mutex<Vec<Dead>>,
    clock: ManualClock,
    reads: AtomicI64,
}

fn folded(mut draft: Draft) -> Draft {
    draft.key.key = draft.key.key.to_lowercase().into();
    draft
}

/// The key as if its scope were the operation, by another name.
fn split(key: &RecordKey) -> RecordKey {
    match key.scope {
        KeyScope::Operation => key.clone(),
        KeyScope::Tenant => {
            let operation = key.stored_operation().into_owned();
            RecordKey { operation: operation.into(), ..key.clone() }.in_scope(KeyScope::Operation)
        }
    }
}

impl Broken {
    fn damage(&self, mut draft: Draft) -> Draft {
        if let Some(kept) = &mut draft.response {
            if self.fault == LosesEmptyBodies && kept.body == Body::Stored(Bytes::new()) {
                kept.body = Body::NotStored;
            }
            if self.fault == MendsHeaders {
                for (_, value) in &mut kept.headers {
                    *value = Bytes::from(String::from_utf8_lossy(value).into_owned());
                }
            }
        }
        if self.fault == CountsFromElsewhere
            && let semel::When::In(lease) = draft.times.lease
        {
            draft.times.lease = semel::When::In(lease + Duration::from_millis(1));
        }
        if self.fault == StampsEarly {
            let now = self.clock.now();
            draft.times = draft.times.map(|when| semel::When::At(when.at(now)));
        }
        draft
    }

    async fn there(&self, key: &RecordKey) -> Option<Record> {
        self.sound.read(vec![key.clone()]).await.ok()?.items.pop()?
    }
}

impl Store for Broken {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        Box::pin(async move {
            let mut drafts: Vec<Draft> = batch.into_iter().map(|draft| self.damage(draft)).collect();
            if self.fault == FoldsKeys {
                drafts = drafts.into_iter().map(folded).collect();
            }
            if self.fault == SplitsTenants {
                drafts.iter_mut().for_each(|draft| draft.key = split(&draft.key));
            }
            if self.fault == LooksBeforeItCreates && drafts.len() == 1 {
                let before = self.there(&drafts[0].key).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                if before.is_none()
                    && let Some(other) = self.there(&drafts[0].key).await
                {
                    self.sound.remove(vec![other.expected()]).await?;
                }
            }
            let mut answer = self.sound.create(drafts).await?;
            if self.fault == FailsBatchesWhole && answer.items.iter().any(|item| *item != Created::Inserted) {
                let lost = answer.items.iter_mut().filter(|item| **item == Created::Inserted);
                lost.for_each(|item| *item = Created::Locked);
            }
            Ok(answer)
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            let mut swaps = batch;
            for swap in &mut swaps {
                *swap.next = self.damage((*swap.next).clone());
                let Some(there) = self.there(&swap.expected.key).await else {
                    continue;
                };
                let other = there.operation_id != swap.expected.operation_id;
                if self.fault == IgnoresTheVersion && !other
                    || self.fault == IgnoresTheOperation && there.version == swap.expected.version
                {
                    swap.next.version = there.version + 1;
                    swap.next.operation_id = there.operation_id;
                    swap.expected = there.expected();
                } else if self.fault == TellsOfWhatDidNotHappen && there.version != swap.expected.version {
                    let dead = (
                        there,
                        vec![HistoryLine {
                            at: self.clock.now(),
                            version: swap.next.version,
                            entry: swap.history.clone().expect("the rule gives a line"),
                        }],
                    );
                    self.dead.lock().unwrap().push(dead);
                }
            }
            self.sound.swap(swaps).await
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            for expected in &batch {
                if let Some(there) = self.there(&expected.key).await {
                    let history = self.sound.history(there.operation_id).await?;
                    self.dead.lock().unwrap().push((there, history));
                }
            }
            self.sound.remove(batch).await
        })
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            if self.fault == BelievesJumps {
                self.sound.clock(ClockRequest::Accept).await?;
            }
            let asked = keys.clone();
            let keys = if self.fault == SplitsTenants { keys.iter().map(split).collect() } else { keys };
            let mut answer = self.sound.read(keys).await?;
            if self.fault == RenamesOperations {
                for (record, asked) in answer.items.iter_mut().zip(asked) {
                    if let Some(record) = record {
                        record.key = asked;
                    }
                }
            }
            if self.fault == GoesBackInTime {
                let reads = self.reads.fetch_add(1, Ordering::SeqCst);
                answer.now = Timestamp::from_millis(answer.now.as_millis() - reads);
            }
            Ok(answer)
        })
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(async move {
            let mut answer = self.sound.find(ids.clone()).await?;
            if self.fault == FindsTheDead {
                let dead = self.dead.lock().unwrap();
                for (id, item) in ids.iter().zip(&mut answer.items).filter(|(_, item)| item.is_none()) {
                    *item = dead
                        .iter()
                        .map(|(record, _)| record)
                        .find(|record| record.operation_id == *id)
                        .cloned();
                }
            }
            Ok(answer)
        })
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        Box::pin(async move {
            let mut lines = self.sound.history(id).await?;
            if matches!(self.fault, KeepsHistory | PurgesRecordsAlone | TellsOfWhatDidNotHappen) {
                let dead = self.dead.lock().unwrap();
                let kept = dead.iter().filter(|(record, _)| record.operation_id == id);
                lines.extend(kept.flat_map(|(_, lines)| lines.clone()));
            }
            Ok(lines)
        })
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        Box::pin(async move {
            let mut page = self.sound.list(filter, from, limit).await?;
            if self.fault == SkipsBetweenPages && page.next.is_some() && page.records.len() > 1 {
                page.records.pop();
            }
            if self.fault == ListsBodies {
                let ids = page.records.iter().map(|record| record.operation_id).collect();
                page.records = self.sound.find(ids).await?.items.into_iter().flatten().collect();
            }
            Ok(page)
        })
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        Box::pin(async move {
            let limit = if self.fault == KnowsNoLimit { usize::MAX } else { query.limit };
            let mut answer = self.sound.due(DueQuery { limit, ..query }).await?;
            if self.fault == HurriesThings {
                let all = self.sound.list(Filter::default(), None, usize::MAX).await?.records;
                let waits = |record: &Record| record.due().is_some_and(|(kind, _)| kind == query.kind);
                answer.items = all.into_iter().filter(waits).collect();
            }
            Ok(answer)
        })
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        Box::pin(async move {
            if self.fault != KeepsAnswers {
                return self.sound.drop_answers(at_most).await;
            }
            let all = self.sound.list(Filter::default(), None, usize::MAX).await?.records;
            let now = self.clock.now();
            let over = |record: &Record| record.answer_ends().filter(|end| end.has_come(now));
            let mut items: Vec<Timestamp> = all.iter().filter_map(over).take(at_most).collect();
            items.sort_unstable();
            Ok(Answer::at(now, items))
        })
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        Box::pin(async move {
            if self.fault == BelievesJumps {
                self.sound.clock(ClockRequest::Accept).await?;
            }
            let all = self.sound.list(Filter::default(), None, usize::MAX).await?.records;
            let old =
                |record: &Record| record.times.purge.unwrap_or(record.times.lease).has_come(self.clock.now());
            for record in all.into_iter().filter(old) {
                if self.fault == PurgesRecordsAlone {
                    let history = self.sound.history(record.operation_id).await?;
                    self.dead.lock().unwrap().push((record, history));
                } else if self.fault == PurgesWhatIsOld {
                    self.sound.remove(vec![record.expected()]).await?;
                }
            }
            self.sound.purge(at_most).await
        })
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        Box::pin(async move {
            let kept = self.sound.remember(name, value.clone()).await?;
            Ok(if self.fault == ChangesItsSecret { value } else { kept })
        })
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            if self.fault != CountsTheExpired {
                return self.sound.count_live(tenant, at_most).await;
            }
            let all = Filter { tenant: Some(tenant), ..Filter::default() };
            Ok(self.sound.list(all, None, usize::MAX).await?.records.len() as u64)
        })
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        Box::pin(async move {
            let mut live = self.sound.live_operations(newest).await?;
            if self.fault == CountsTheExpired {
                live.operations.values_mut().for_each(|count| *count += 1);
            }
            if self.fault == KnowsNoLimit {
                live = self.sound.live_operations(usize::MAX).await?;
            }
            Ok(live)
        })
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        self.sound.recall(name)
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        self.sound.clock(request)
    }

    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        self.sound.replace(name, expected, value)
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        self.sound.set_key_format(format, respell)
    }

    fn audit(
        &self,
        entry: semel::audit::AuditEntry,
        change: Option<Swap>,
    ) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            if self.fault != AuditsBefore {
                return self.sound.audit(entry, change).await;
            }
            let audited = self.sound.audit(entry, None).await?;
            match change {
                Some(change) => self.sound.swap(vec![change]).await,
                None => Ok(audited),
            }
        })
    }

    fn audited(
        &self,
        filter: semel::audit::AuditFilter,
        from: Option<semel::audit::AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, semel::audit::AuditPage> {
        Box::pin(async move {
            let mut page = self.sound.audited(filter, from, limit).await?;
            if self.fault == ForgetsTheAudit {
                let dead = self.dead.lock().unwrap();
                page.lines.retain(|line| dead.is_empty() || line.entry.operation_id().is_some());
            }
            Ok(page)
        })
    }

    fn purge_audit(&self, older_than: std::time::Duration, at_most: usize) -> StoreFuture<'_, u64> {
        self.sound.purge_audit(older_than, at_most)
    }

    fn max_concurrent_batches(&self) -> usize {
        1
    }
}

struct With<const FAULT: u8> {
    store: Arc<Broken>,
}

impl<const FAULT: u8> Subject for With<FAULT> {
    async fn fresh() -> Self {
        let clock = ManualClock::at(Timestamp::from_millis(1_800_000_000_000));
        Self {
            store: Arc::new(Broken {
                fault: FAULTS[usize::from(FAULT)],
                sound: MemoryStore::with_clock(clock.clone()),
                dead: Mutex::default(),
                clock,
                reads: AtomicI64::default(),
            }),
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn another(&self) -> Result<Arc<dyn Store>, Lacking> {
        Ok(self.store.clone())
    }

    async fn reopened(self) -> Result<Self, Lacking> {
        Err(Lacking("a store in memory is not durable"))
    }

    fn clock(&self) -> Result<Arc<dyn Hands>, Lacking> {
        Ok(Arc::new(self.store.clock.clone()))
    }
}

fn found_out<const FAULT: u8>(area: &str, rule: Rule) {
    // A run of random histories may pass a fault by; twenty in a row do not.
    let tries = if area == "random_histories" { 20 } else { 1 };
    let is_found_out = || catch_unwind(|| check::<With<FAULT>>("broken_stores", "found_out", rule)).is_err();
    assert!((0..tries).any(|_| is_found_out()), "the rule holds, and must not");
}

macro_rules! found_out {
    ($($number:literal $fault:ident by $name:ident: $area:ident::$rule:ident;)*) => {
        const FAULTS: [Fault; [$($number),*].len()] = [$($fault),*];

        $(
            #[test]
            fn $name() {
                found_out::<$number>(stringify!($area), |bench| Box::pin($area::$rule(bench)));
            }
        )*
    };
}

found_out! {
    0 LooksBeforeItCreates by a_store_that_looks_before_it_creates: races::of_many_creates_of_one_key_exactly_one_wins;
    1 FoldsKeys by a_store_that_folds_keys: reserve::keys_are_compared_byte_by_byte;
    2 IgnoresTheVersion by a_store_that_ignores_the_version:
        fencing::a_swap_of_an_old_version_changes_nothing_and_is_told_what_is_there;
    3 IgnoresTheOperation by a_store_that_ignores_the_operation:
        fencing::a_swap_of_an_operation_that_came_before_changes_nothing;
    4 FailsBatchesWhole by a_store_that_fails_batches_whole: batches::a_create_that_loses_leaves_the_others_done;
    5 TellsOfWhatDidNotHappen by a_store_that_tells_of_what_did_not_happen:
        fencing::a_swap_of_an_old_version_changes_nothing_and_is_told_what_is_there;
    6 KeepsHistory by a_store_that_keeps_history: history::history_goes_with_its_record;
    7 LosesEmptyBodies by a_store_that_loses_empty_bodies: replay::an_empty_body_is_a_body;
    8 MendsHeaders by a_store_that_mends_headers: replay::header_values_come_back_byte_by_byte_in_order;
    9 ListsBodies by a_store_that_lists_bodies: listing::a_listing_leaves_bodies_out_and_everything_else_in;
    10 SkipsBetweenPages by a_store_that_skips_between_pages: listing::pages_are_bounded_and_together_complete;
    11 HurriesThings by a_store_that_hurries_things: due::nothing_is_due_before_its_time;
    12 KnowsNoLimit by a_store_that_knows_no_limit:
        due::a_caller_is_given_no_more_than_it_asks_for_and_goes_on_from_there;
    13 GoesBackInTime by a_store_that_goes_back_in_time: clock::time_never_goes_back_from_call_to_call;
    14 CountsFromElsewhere by a_store_that_counts_from_elsewhere: leases::a_lease_counts_from_the_stores_now;
    15 ChangesItsSecret by a_store_that_changes_its_secret: remembering::the_first_value_stays;
    16 FindsTheDead by a_store_that_finds_the_dead: find::what_is_found_is_the_record_as_it_is_now;
    17 HurriesThings by a_store_that_hurries_things_in_a_random_history:
        random_histories::a_store_agrees_with_the_state_machine;
    18 IgnoresTheVersion by a_store_that_ignores_the_version_in_a_random_history:
        random_histories::a_store_agrees_with_the_state_machine;
    19 KeepsHistory by a_store_that_keeps_history_past_the_reaper:
        expiry::a_window_that_is_over_is_read_off_the_time_and_the_record_goes_in_the_end;
    20 CountsTheExpired by a_store_that_counts_the_expired: counting::keys_are_counted_for_their_tenant_until_they_expire;
    21 KeepsAnswers by a_store_that_keeps_answers: answers::what_is_over_is_dropped_and_nothing_else_changes;
    22 PurgesWhatIsOld by a_store_that_purges_what_is_old: purging::what_has_not_ended_is_never_removed_however_old;
    23 PurgesRecordsAlone by a_store_that_purges_records_alone:
        purging::what_is_over_is_removed_with_its_history_and_nothing_else;
    24 BelievesJumps by a_store_that_believes_jumps:
        holds::what_is_over_by_a_jump_alone_is_replayed_and_nothing_is_purged_or_dropped;
    25 StampsEarly by a_store_that_stamps_early: holds::during_a_hold_windows_are_stamped_late_and_leases_early;
    26 SplitsTenants by a_store_that_splits_tenants:
        scopes::of_many_operations_at_once_under_one_key_exactly_one_executes;
    27 RenamesOperations by a_store_that_renames_operations:
        scopes::a_key_across_operations_has_one_record_which_keeps_its_operation;
    28 CountsTheExpired by a_store_that_counts_the_expired_of_operations:
        counting::live_keys_are_counted_by_operation_and_scope;
    29 KnowsNoLimit by a_store_that_knows_no_limit_to_a_count:
        counting::no_more_records_are_looked_at_than_asked_for_and_the_newest_first;
    30 AuditsBefore by a_store_that_audits_what_was_not_done: audit::an_entry_and_its_change_are_one_commit;
    31 ForgetsTheAudit by a_store_that_forgets_the_audit: audit::entries_outlive_the_record_that_they_are_about;
}

/// And a sound one passes: the harness above does not fail for a reason of its own.
#[test]
fn a_fault_that_a_rule_is_not_about_does_not_fail_it() {
    check::<With<15>>("broken_stores", "sound", |bench| Box::pin(fidelity::every_state_comes_back(bench)));
}
