//! The records, with what is needed to find them, and to take writes back that were not durable.

use super::log::{Log, Undo};
use bytes::Bytes;
use semel::audit::AuditTable;
use semel::clock::Mark;
use semel::transition::state_at;
use semel::{
    Body, Created, Cursor, Draft, DueKind, DueQuery, Expected, Filter, HistoryLine, LiveOperations, Now,
    OperationId, Page, Record, RecordKey, State, StoreError, StoredResponse, Swap, Swapped, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A record as it is on the disk.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(super) record: Record,
    pub(super) history: Vec<HistoryLine>,
    place: i64,
    /// It, or its answer, is not what was written.
    damaged: bool,
    /// Its sealed answer is not what was written, which was this, and nothing else says so.
    written: Option<Bytes>,
}

pub(crate) struct Contents {
    /// By what a record is the only one of.
    pub(super) records: BTreeMap<RecordKey, Kept>,
    ids: HashMap<OperationId, RecordKey>,
    places: BTreeMap<i64, RecordKey>,
    due: BTreeSet<(DueKind, Timestamp, OperationId)>,
    answers: BTreeSet<(Timestamp, OperationId)>,
    pub(super) remembered: BTreeMap<String, Bytes>,
    pub(super) sealed_keys: Option<bool>,
    /// Nothing that is simulated writes any of it, so no crash takes it back.
    pub(super) audit: AuditTable,
    mark: Mark,
    created: i64,
    log: Log<Kept>,
}

impl Default for Contents {
    fn default() -> Self {
        Self {
            records: BTreeMap::new(),
            ids: HashMap::new(),
            places: BTreeMap::new(),
            due: BTreeSet::new(),
            answers: BTreeSet::new(),
            remembered: BTreeMap::new(),
            sealed_keys: None,
            audit: AuditTable::default(),
            mark: Mark::NONE,
            created: 0,
            log: Log::default(),
        }
    }
}

impl Contents {
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    pub(super) fn set_mark(&mut self, mark: Mark) {
        self.log.append(Undo::Mark(self.mark));
        self.mark = mark;
    }

    /// How much was ever written.
    pub(super) fn position(&self) -> u64 {
        self.log.end()
    }

    /// How often it has crashed.
    pub(super) fn crashes(&self) -> u64 {
        self.log.crashes()
    }

    /// Somebody is told of what is there by now: it must survive.
    pub(super) fn acknowledge(&mut self, position: u64) {
        self.log.acknowledge(position);
    }

    /// Everything that was written so far is durable.
    pub(super) fn flush(&mut self) {
        self.log.acknowledge(self.log.end());
    }

    pub(super) fn crash(&mut self, keep: impl FnOnce(u64) -> u64) -> Vec<RecordKey> {
        let undone = self.log.crash(keep);
        self.take_back(undone)
    }

    pub(super) fn fail_over(&mut self, lag: u64) -> Vec<RecordKey> {
        let undone = self.log.fail_over(lag);
        self.take_back(undone)
    }

    fn take_back(&mut self, undone: Vec<Undo<Kept>>) -> Vec<RecordKey> {
        let mut records = Vec::new();
        for undo in undone {
            match undo {
                Undo::Mark(mark) => self.mark = mark,
                Undo::Remembered(name, Some(value)) => drop(self.remembered.insert(name, value)),
                Undo::Remembered(name, None) => drop(self.remembered.remove(&name)),
                Undo::Record(key, before) => {
                    self.exchange(&key, before.map(|kept| *kept));
                    records.push(key);
                }
            }
        }
        records
    }

    /// Puts a record in its place, with what it is found by; what was there.
    fn exchange(&mut self, key: &RecordKey, kept: Option<Kept>) -> Option<Kept> {
        let before = match kept {
            Some(kept) => {
                let next = kept.record.clone();
                let place = kept.place;
                let before = self.records.insert(key.clone(), kept);
                if let Some(before) = &before {
                    self.forget_ways(&before.record, before.place);
                }
                self.ids.insert(next.operation_id, key.clone());
                self.places.insert(place, key.clone());
                self.due.extend(next.due().map(|(kind, at)| (kind, at, next.operation_id)));
                self.answers.extend(droppable(&next).map(|at| (at, next.operation_id)));
                return before;
            }
            None => self.records.remove(key),
        };
        if let Some(before) = &before {
            self.forget_ways(&before.record.clone(), before.place);
        }
        before
    }

    fn forget_ways(&mut self, record: &Record, place: i64) {
        self.ids.remove(&record.operation_id);
        self.places.remove(&place);
        if let Some((kind, at)) = record.due() {
            self.due.remove(&(kind, at, record.operation_id));
        }
        if let Some(at) = droppable(record) {
            self.answers.remove(&(at, record.operation_id));
        }
    }

    fn write(&mut self, key: &RecordKey, kept: Option<Kept>) {
        let before = self.exchange(key, kept);
        self.log.append(Undo::Record(key.clone(), before.map(Box::new)));
    }

    pub(crate) fn record(&self, key: &RecordKey) -> Option<&Record> {
        self.records.get(&key.unique()).map(|kept| &kept.record)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Record, bool)> {
        self.records.values().map(|kept| (&kept.record, kept.damaged))
    }

    /// Damages the how-manieth record: its answer, or, where it has none, what it says of itself; which it was.
    pub(crate) fn damage(&mut self, choose: impl FnOnce(usize) -> usize) -> Option<OperationId> {
        let mut whole: Vec<&mut Kept> = self.records.values_mut().filter(|kept| !kept.damaged).collect();
        if whole.is_empty() {
            return None;
        }
        let index = choose(whole.len());
        let kept = &mut whole[index];
        kept.damaged = true;
        Some(kept.record.operation_id)
    }

    /// Exchanges the sealed answers of two records, or flips a bit where there is one alone; which they were.
    pub(crate) fn tamper(&mut self, choose: impl Fn(usize) -> usize) -> Vec<OperationId> {
        let sealed = |kept: &'_ Kept| match kept.record.response.as_ref().map(|response| &response.body) {
            // Once: what is done to it twice may be what was written.
            Some(Body::Sealed(bytes)) if !kept.damaged && kept.written.is_none() => {
                Some((kept.record.operation_id, bytes.clone()))
            }
            _ => None,
        };
        let sealed: Vec<(OperationId, Bytes)> = self.records.values().filter_map(sealed).collect();
        if sealed.is_empty() {
            return Vec::new();
        }
        let (one, other) = (&sealed[choose(sealed.len())], &sealed[choose(sealed.len())]);
        let exchanged = if one.0 == other.0 || choose(2) == 0 {
            let mut bytes = one.1.to_vec();
            if let Some(last) = bytes.last_mut() {
                *last ^= 1;
            }
            vec![(one.0, Bytes::from(bytes))]
        } else {
            vec![(one.0, other.1.clone()), (other.0, one.1.clone())]
        };
        for (id, bytes) in &exchanged {
            let kept = self.ids.get(id).and_then(|key| self.records.get_mut(key));
            if let Some(kept) = kept
                && let Some(response) = &mut kept.record.response
            {
                let before = std::mem::replace(&mut response.body, Body::Sealed(bytes.clone()));
                if let Body::Sealed(written) = before {
                    kept.written = Some(written);
                }
            }
        }
        exchanged.into_iter().map(|(id, _)| id).collect()
    }

    pub(super) fn create(&mut self, draft: &Draft, now: Now) -> Created {
        let key = draft.key.unique();
        if let Some(kept) = self.records.get(&key) {
            return match undamaged(kept) {
                Ok(()) => Created::Exists(Box::new(kept.record.clone())),
                Err(why) => Created::Damaged(why),
            };
        }
        self.created += 1;
        let kept = Kept {
            record: draft.clone().at(now),
            history: Vec::new(),
            place: self.created,
            damaged: false,
            written: None,
        };
        self.write(&key, Some(kept));
        Created::Inserted
    }

    pub(super) fn swap(&mut self, swap: &Swap, now: Now) -> Swapped {
        let kept = match self.expected(&swap.expected) {
            Ok(kept) => kept,
            Err(otherwise) => return otherwise,
        };
        let (mut history, place) = (kept.history.clone(), kept.place);
        let written = kept.written.clone().filter(|_| carries_damage(kept, &swap.next));
        let record = Draft::clone(&swap.next).at(now);
        let version = record.version;
        history.extend(swap.history.clone().map(|entry| HistoryLine { at: now.earliest, version, entry }));
        self.write(
            &swap.expected.key.unique(),
            Some(Kept { record, history, place, damaged: false, written }),
        );
        Swapped::Done
    }

    /// The record that this is to replace, as its writer read it: where that was before somebody tampered with it, as it was then. And whether what
    /// was tampered with is written back.
    pub(super) fn as_read(&self, swap: &Swap) -> (Option<Record>, bool) {
        let Some(kept) = self.records.get(&swap.expected.key.unique()) else { return (None, false) };
        let mut record = kept.record.clone();
        if let (Some(response), Some(written)) = (&mut record.response, &kept.written)
            && matches!(response.body, Body::Sealed(_))
            && sealed(swap.next.response.as_ref()) == Some(written)
        {
            response.body = Body::Sealed(written.clone());
        }
        (Some(record), carries_damage(kept, &swap.next))
    }

    /// Whether a record is what was written.
    pub(super) fn is_whole(&self, key: &RecordKey) -> bool {
        self.records.get(&key.unique()).is_none_or(|kept| !kept.damaged && kept.written.is_none())
    }

    pub(super) fn remove(&mut self, expected: &Expected) -> Swapped {
        match self.expected(expected) {
            Ok(_) => {
                self.write(&expected.key.unique(), None);
                Swapped::Done
            }
            Err(otherwise) => otherwise,
        }
    }

    fn expected(&self, expected: &Expected) -> Result<&Kept, Swapped> {
        match self.records.get(&expected.key.unique()) {
            None => Err(Swapped::Missing),
            Some(kept) if kept.record.expected() == *expected => Ok(kept),
            Some(kept) => Err(match undamaged(kept) {
                Ok(()) => Swapped::Changed(Box::new(kept.record.clone())),
                Err(why) => Swapped::Damaged(why),
            }),
        }
    }

    pub(super) fn read(&self, key: &RecordKey) -> Result<Option<Record>, StoreError> {
        let Some(kept) = self.records.get(&key.unique()) else { return Ok(None) };
        undamaged(kept).map_err(StoreError::Damaged)?;
        Ok(Some(kept.record.clone()))
    }

    pub(super) fn find(&self, id: OperationId) -> Result<Option<Record>, StoreError> {
        self.ids.get(&id).map_or(Ok(None), |key| self.read(key))
    }

    pub(super) fn history(&self, id: OperationId) -> Vec<HistoryLine> {
        let kept = self.ids.get(&id).and_then(|key| self.records.get(key));
        kept.map(|kept| kept.history.clone()).unwrap_or_default()
    }

    pub(super) fn list(&self, filter: &Filter, from: Option<i64>, limit: usize, now: Now) -> Page {
        let after = |from: i64| (std::ops::Bound::Excluded(from), std::ops::Bound::Unbounded);
        let places: Box<dyn Iterator<Item = (&i64, &RecordKey)>> = match (from, filter.oldest_first) {
            (Some(from), false) => Box::new(self.places.range(..from).rev()),
            (None, false) => Box::new(self.places.iter().rev()),
            (Some(from), true) => Box::new(self.places.range(after(from))),
            (None, true) => Box::new(self.places.iter()),
        };
        let kept = places.filter_map(|(_, key)| self.records.get(key));
        let mut found = kept.filter(|kept| passes(filter, &kept.record, now.earliest));
        let (mut page, mut last) = (Page { records: Vec::new(), damaged: 0, next: None }, None);
        for kept in found.by_ref().take(limit) {
            last = Some(Cursor::of_place(kept.place));
            match undamaged(kept) {
                Ok(()) => page.records.push(without_body(&kept.record)),
                Err(_) => page.damaged += 1,
            }
        }
        page.next = last.filter(|_| found.next().is_some());
        page
    }

    pub(super) fn count_live(&self, tenant: &str, at_most: u64, now: Now) -> u64 {
        let of_tenant = self.records.range(RecordKey::new(tenant, "", "")..).map(|(_, kept)| &kept.record);
        let of_tenant = of_tenant.take_while(|record| *record.key.tenant == *tenant);
        let live = of_tenant.filter(|record| state_at(record, now.latest) != State::Expired);
        live.zip(0..at_most).count() as u64
    }

    pub(super) fn live_operations(&self, newest: usize, now: Now) -> LiveOperations {
        let mut live = LiveOperations { is_all: self.places.len() < newest, ..LiveOperations::default() };
        let records = self.places.values().rev().take(newest).filter_map(|key| self.records.get(key));
        for record in records.map(|kept| &kept.record) {
            if state_at(record, now.earliest) != State::Expired {
                let RecordKey { operation, scope, .. } = &record.key;
                *live.operations.entry((operation.to_string(), *scope)).or_default() += 1;
            }
        }
        live
    }

    pub(super) fn due(&self, query: &DueQuery, now: Now) -> Vec<Record> {
        if now.is_held() && matches!(query.kind, DueKind::Window | DueKind::Purge) {
            return Vec::new();
        }
        let due = self
            .due_by(query.kind, now)
            .filter(|(at, id)| query.after.is_none_or(|after| (*at, *id) > after));
        let kept = due.filter_map(|(_, id)| self.records.get(self.ids.get(&id)?));
        kept.filter(|kept| !kept.damaged).take(query.limit).map(|kept| without_body(&kept.record)).collect()
    }

    fn due_by(&self, kind: DueKind, now: Now) -> impl Iterator<Item = (Timestamp, OperationId)> {
        let least = OperationId::from_u128(0);
        let from = (kind, Timestamp::from_millis(i64::MIN), least);
        let of_kind = self
            .due
            .range(from..)
            .take_while(move |(found, at, _)| *found == kind && at.has_come(now.earliest));
        of_kind.map(|(_, at, id)| (*at, *id))
    }

    pub(super) fn drop_answers(&mut self, at_most: usize, now: Now) -> Vec<Timestamp> {
        if now.is_held() {
            return Vec::new();
        }
        let over = self.answers.iter().take_while(|(end, _)| end.has_come(now.earliest)).take(at_most);
        let over: Vec<(Timestamp, OperationId)> = over.copied().collect();
        for (_, id) in &over {
            let Some(key) = self.ids.get(id).cloned() else { continue };
            let Some(mut kept) = self.records.get(&key).cloned() else { continue };
            if let Some(response) = &mut kept.record.response {
                response.headers.clear();
                if response.body.is_kept() {
                    response.body = Body::Dropped;
                }
            }
            self.write(&key, Some(kept));
        }
        over.into_iter().map(|(end, _)| end).collect()
    }

    pub(super) fn purge(&mut self, at_most: usize, now: Now) -> Vec<(Timestamp, Record)> {
        if now.is_held() {
            return Vec::new();
        }
        let over: Vec<_> = self.due_by(DueKind::Purge, now).take(at_most).collect();
        let purge = |(since, id): (Timestamp, OperationId)| {
            let key = self.ids.get(&id)?.clone();
            let record = self.record(&key)?.clone();
            self.write(&key, None);
            Some((since, record))
        };
        over.into_iter().filter_map(purge).collect()
    }

    pub(super) fn remember(&mut self, name: String, value: Bytes) -> Bytes {
        if let Some(kept) = self.remembered.get(&name) {
            return kept.clone();
        }
        self.set_remembered(name, value.clone());
        value
    }

    pub(super) fn recall(&self, name: &str) -> Option<Bytes> {
        self.remembered.get(name).cloned()
    }

    pub(super) fn replace(&mut self, name: &str, expected: &Bytes, value: Bytes) -> Option<Bytes> {
        let kept = self.remembered.get(name)?.clone();
        if kept != *expected {
            return Some(kept);
        }
        self.set_remembered(name.to_owned(), value.clone());
        Some(value)
    }

    fn set_remembered(&mut self, name: String, value: Bytes) {
        let before = self.remembered.insert(name.clone(), value);
        self.log.append(Undo::Remembered(name, before));
    }

    /// Rewrites all records in another key format.
    pub(super) fn respelt(&mut self, spelt: Vec<(RecordKey, Record)>) {
        for (old, record) in spelt {
            let Some(kept) = self.exchange(&old.unique(), None) else { continue };
            let key = record.key.unique();
            self.exchange(&key, Some(Kept { record, ..kept }));
        }
    }
}

/// Whether an answer that somebody has tampered with is written back as it is.
fn carries_damage(kept: &Kept, next: &Draft) -> bool {
    kept.written.is_some()
        && sealed(kept.record.response.as_ref()).is_some_and(|it| sealed(next.response.as_ref()) == Some(it))
}

fn sealed(response: Option<&StoredResponse>) -> Option<&Bytes> {
    match &response?.body {
        Body::Sealed(bytes) => Some(bytes),
        _ => None,
    }
}

fn undamaged(kept: &Kept) -> Result<(), String> {
    if kept.damaged { Err("it is not what was written".into()) } else { Ok(()) }
}

/// When its answer ends, if there is anything to drop of it.
fn droppable(record: &Record) -> Option<Timestamp> {
    let response = record.response.as_ref()?;
    response.has_droppable().then(|| record.answer_ends()).flatten()
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
