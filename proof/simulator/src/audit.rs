//! Looks at every write that the store commits: whether the state machine allows it, and what follows from it.

use crate::book::{Book, Pages};
use crate::invariants;
use crate::life::Life;
use crate::lock::locked;
use crate::machine::{EPOCH, LOOKS_RIGHT};
use crate::rules::{Rule, Work, is_past_payment};
use crate::sometimes::{Sight, Sights};
use crate::steps;
use crate::store::{Audit, Write};
use crate::trace::{Place, Trace};
use semel::clock::Turn;
use semel::{Actor, Body, Draft, Happening, Now, OperationId, Owner, Record, RecordKey, State, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

/// What is known of all operations, past the store's own words.
pub(crate) struct Auditor {
    trace: Arc<Trace>,
    book: Arc<Book>,
    rules: Arc<Vec<Rule>>,
    known: Mutex<Known>,
    pub(crate) sights: Sights,
}

#[derive(Default)]
struct Known {
    /// Every attempt that was ever committed, and which process took it.
    attempts: BTreeMap<(OperationId, u32), usize>,
    /// Which operation a key stood for last.
    last: BTreeMap<RecordKey, OperationId>,
    /// When each operation ended.
    ended: BTreeMap<OperationId, Ended>,
    /// When it had, before another attempt began: a crash may take that back.
    ended_before: BTreeMap<OperationId, Ended>,
    /// The highest time that any instance went by so far, at each moment at which it rose.
    earliest: Vec<(u64, i64)>,
    /// What each process went by of late: one moment of each second, and of each step of the clock.
    told: BTreeMap<usize, VecDeque<(u64, Now)>>,
    /// The seconds in which a hold was open at any instance: windows end late then.
    held: BTreeSet<u64>,
    /// How often each attempt's outcome was claimed to be asked about, and how often it was asked about.
    claims: BTreeMap<(OperationId, u32), u32>,
    questions: BTreeMap<(OperationId, u32), u32>,
    /// What webhooks left in the history of each operation.
    remarks: BTreeSet<(OperationId, String)>,
    /// An operation whose outcome became unknown.
    doubted: Option<OperationId>,
    /// By how much the time by which windows are stamped was ahead of the true one at least, and by how much more the time was by which they
    /// were judged later.
    least_lead: Option<i64>,
    run_up: i64,
    /// By how much the store's time was ahead of the true one at most, and behind it, right after an operator had a wrong clock accepted.
    accepted: (i64, i64),
    /// When an operation was removed because nothing had happened.
    released: BTreeMap<OperationId, u64>,
    /// Which attempt committed the recovery point behind which the payment is not made again.
    passed: BTreeMap<OperationId, u32>,
    /// Requests that found an operation in progress, by the token that each would own by, and which operation that was.
    waiting: BTreeMap<Owner, OperationId>,
    /// Who stands still with the last word of an attempt, until another one begins.
    asleep: BTreeMap<OperationId, (u32, Arc<Life>)>,
    damaged: BTreeMap<OperationId, u64>,
    ever_damaged: BTreeSet<OperationId>,
    violations: Vec<String>,
}

impl Known {
    /// Follows what is written about doubt.
    fn follow(&mut self, id: OperationId, write: &Write<'_>) {
        if let (Some(before), Some(draft)) = (write.before, write.draft)
            && draft.reconcile_attempts == before.reconcile_attempts + 1
        {
            *self.claims.entry((id, draft.attempt)).or_default() += 1;
        }
        let Some(entry) = write.history else { return };
        if entry.happening == Happening::Doubted {
            self.doubted = Some(id);
        }
        let is_of_webhook =
            entry.happening == Happening::Remarked && matches!(entry.actor, Actor::Webhook(_));
        let note = entry.note.as_deref().unwrap_or_default();
        if let Some((_, message)) = note.split_once("message ").filter(|_| is_of_webhook) {
            if !message.starts_with("msg-") {
                self.violations.push(format!("webhooks {id}: nobody sent the message {message}"));
            }
            if !self.remarks.insert((id, note.to_owned())) {
                self.violations.push(format!("webhooks {id}: the message {message} left two remarks"));
            }
        }
    }

    /// Follows who takes an attempt, and how far it comes; who was standing still until then.
    fn follow_attempt(&mut self, id: OperationId, write: &Write<'_>) -> Option<Arc<Life>> {
        let draft = write.draft?;
        if is_past_payment(draft.recovery_point.as_deref()) {
            self.passed.entry(id).or_insert(draft.attempt);
        }
        if write.before.is_some_and(|before| before.attempt == draft.attempt) {
            return None;
        }
        if let Some(found) = self.waiting.get(&draft.owner) {
            self.violations.push(format!(
                "waiters {id} attempt {}: its request found {found} in progress, and executes all the same",
                draft.attempt
            ));
        }
        let is_next = self.asleep.get(&id).is_some_and(|(attempt, _)| *attempt < draft.attempt);
        if is_next { self.asleep.remove(&id).map(|(_, life)| life) } else { None }
    }

    fn remember(&mut self, instance: usize, at: u64, now: Now) {
        let told = self.told.entry(instance).or_default();
        match told.back_mut() {
            Some((then, last)) if *then / 1_000 == at / 1_000 && last.since == now.since => *last = now,
            _ => told.push_back((at, now)),
        }
        if told.len() > REMEMBERED {
            told.pop_front();
        }
    }

    /// What a process went by of late, the last first.
    fn told_of(&self, instance: usize) -> impl Iterator<Item = Now> + Clone {
        self.told.get(&instance).into_iter().flatten().rev().map(|(_, now)| *now)
    }
}

/// How many moments of each process are remembered: what stood still for 45 seconds goes by what it knew before.
const REMEMBERED: usize = 64;

/// How an operation ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// When, by the true time.
    pub(crate) at: u64,
    /// The ends of its window and its tombstone by the store's time, in milliseconds since 1970.
    pub(crate) expires: i64,
    pub(crate) purge: i64,
}

impl Auditor {
    pub(crate) fn new(trace: Arc<Trace>, book: Arc<Book>, rules: Arc<Vec<Rule>>) -> Self {
        Self { trace, book, rules, known: Mutex::default(), sights: Sights::default() }
    }

    pub(crate) fn has_attempt(&self, id: OperationId, attempt: u32) -> bool {
        locked(&self.known).attempts.contains_key(&(id, attempt))
    }

    /// Whether an earlier attempt than this one has committed that the payment is made.
    pub(crate) fn has_passed(&self, id: OperationId, attempt: u32) -> bool {
        locked(&self.known).passed.get(&id).is_some_and(|passed| *passed < attempt)
    }

    /// Has a process woken when another attempt than this one begins.
    pub(crate) fn wakes(&self, id: OperationId, attempt: u32, life: &Arc<Life>) {
        locked(&self.known).asleep.insert(id, (attempt, Arc::clone(life)));
    }

    /// When it ended; `None`: it has not, as far as the store was ever told.
    pub(crate) fn ended(&self, id: OperationId) -> Option<Ended> {
        locked(&self.known).ended.get(&id).copied()
    }

    /// The highest time that any instance had gone by when it was this, by the true time.
    pub(crate) fn earliest_by(&self, at: u64) -> i64 {
        let known = locked(&self.known);
        let index = known.earliest.partition_point(|(then, _)| *then <= at);
        index.checked_sub(1).map_or(i64::MIN, |index| known.earliest[index].1)
    }

    /// Whether a hold was open at any instance in that time.
    pub(crate) fn was_held(&self, from: u64, to: u64) -> bool {
        locked(&self.known).held.range(from / 1_000..=to / 1_000).next().is_some()
    }

    /// By how much the store's time ever gained on the true one, in milliseconds: a window may have ended early by as much.
    pub(crate) fn run_up(&self) -> i64 {
        locked(&self.known).run_up
    }

    /// What the store's time may gain on the true one because operators had a clock accepted that was wrong by then.
    pub(crate) fn accepted(&self) -> i64 {
        let (ahead, behind) = locked(&self.known).accepted;
        ahead + behind
    }

    /// Whether its record was removed by its owner.
    pub(crate) fn was_released(&self, id: OperationId) -> bool {
        locked(&self.known).released.contains_key(&id)
    }

    pub(crate) fn note_damage(&self, id: OperationId, at: u64) {
        let mut known = locked(&self.known);
        known.damaged.insert(id, at);
        known.ever_damaged.insert(id);
    }

    /// Since when it is damaged.
    pub(crate) fn damaged(&self, id: OperationId) -> Option<u64> {
        locked(&self.known).damaged.get(&id).copied()
    }

    /// Whether it was ever damaged.
    pub(crate) fn was_damaged(&self, id: OperationId) -> bool {
        locked(&self.known).ever_damaged.contains(&id)
    }

    /// Whether anything was damaged that never started: nobody may have heard of it before.
    pub(crate) fn was_unseen_damaged(&self, pages: &Pages) -> bool {
        locked(&self.known).ever_damaged.iter().any(|id| pages.order(*id, 1).is_none())
    }

    /// Somebody asks what became of an attempt. Whoever does has claimed the question first.
    pub(crate) fn note_question(&self, id: OperationId, attempt: u32) {
        let mut known = locked(&self.known);
        let claims = known.claims.get(&(id, attempt)).copied().unwrap_or(0);
        let questions = known.questions.entry((id, attempt)).or_default();
        *questions += 1;
        if *questions > claims {
            let what = format!(
                "questions {id} attempt {attempt} was asked about {questions} times, claimed {claims} times"
            );
            known.violations.push(what);
        }
    }

    /// An operation whose outcome became unknown, if there is one.
    pub(crate) fn doubted(&self) -> Option<OperationId> {
        locked(&self.known).doubted
    }

    /// Something that breaks a promise by itself, whatever else comes of it.
    pub(crate) fn object(&self, what: String) {
        locked(&self.known).violations.push(what);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        locked(&self.known).violations.clone()
    }

    /// The one effect of some operations is in the transaction that completes them.
    fn follow_effect(&self, write: &Write<'_>) {
        let Some(draft) = write.draft.filter(|draft| draft.state == State::Completed) else { return };
        let by_evidence = write.history.is_some_and(|entry| entry.happening == Happening::SettledCompleted);
        let is_new = write.before.is_some_and(|before| !has_ended(before.state));
        if by_evidence || !is_new || !self.is_transaction(&draft.key) {
            return;
        }
        let mut pages = self.book.pages();
        if let Some(order) = pages.order(draft.operation_id, draft.attempt) {
            pages.effect(&order);
        }
    }

    fn is_transaction(&self, key: &RecordKey) -> bool {
        self.rules.iter().any(|rule| *rule.name == *key.operation && rule.work == Work::Transaction)
    }
}

/// The record as the writer read it, where the answer's time was over since, and the store dropped it, which raises no version.
fn before_its_answer_went(before: &Record, draft: &Draft) -> Option<Record> {
    let (there, written) = (before.response.as_ref()?, draft.response.as_ref()?);
    let was_dropped = there.body == Body::Dropped && written.body.is_kept() && there.status == written.status;
    was_dropped.then(|| Record { response: Some(written.clone()), ..before.clone() })
}

pub(crate) fn has_ended(state: State) -> bool {
    !matches!(state, State::InProgress | State::Unknown)
}

impl Audit for Auditor {
    fn wrote(&self, instance: usize, write: &Write<'_>, now: Now) {
        let rule = self.rules.iter().find(|rule| *rule.name == *write.key.operation);
        let (id, before) = match (write.draft, write.before) {
            (Some(draft), before) => (draft.operation_id, before),
            (None, Some(before)) => (before.operation_id, Some(before)),
            (None, None) => return,
        };
        let from = before.map_or("nothing", |before| before.state.as_str());
        match write.draft {
            Some(draft) => self.trace.note(
                Place::Store,
                format_args!(
                    "{id} process {instance}: {from} -> {} v{} attempt {}{}",
                    draft.state.as_str(),
                    draft.version,
                    draft.attempt,
                    if draft.dead_letter { ", dead letter" } else { "" },
                ),
            ),
            None => self.trace.note(Place::Store, format_args!("{id} process {instance}: {from} -> removed")),
        }
        self.follow_effect(write);
        self.sights.wrote(write);
        let as_read = before.and_then(|before| before_its_answer_went(before, write.draft?));
        let write = &Write { before: as_read.as_ref().or(before), ..*write };
        let mut known = locked(&self.known);
        if let Some(rule) = rule {
            let case = steps::Case { rule, now, told: known.told_of(instance) };
            let allowed = steps::check(write, &case);
            drop(case);
            if let Err(why) = allowed {
                known.violations.push(format!("model {id}: {why}"));
            }
        }
        if let Some(rule) = rule {
            let owner = before.and_then(|before| known.attempts.get(&(id, before.attempt)).copied());
            let case = invariants::Case { rule, pages: &self.book.pages(), instance, owner, now };
            if let Err(why) = case.check(write) {
                known.violations.push(format!("writes {id}: {from}: {why}"));
            }
        }
        if let Some(life) = known.follow_attempt(id, write) {
            self.sights.note(Sight::Woken);
            life.wake();
        }
        known.follow(id, write);
        if !write.carries_damage {
            known.damaged.remove(&id);
        }
        match write.draft {
            Some(draft) => {
                if before.is_none_or(|before| before.attempt != draft.attempt) {
                    known.attempts.insert((id, draft.attempt), instance);
                }
                let earlier = known.last.insert(write.key.clone(), id);
                if before.is_none() && earlier.is_some_and(|earlier| known.ended.contains_key(&earlier)) {
                    self.sights.note(Sight::Renewed);
                }
                if has_ended(draft.state) {
                    if before.is_none_or(|before| !has_ended(before.state)) {
                        let times = draft.times.at(now);
                        let millis = |end: Option<Timestamp>| end.map_or(i64::MAX, Timestamp::as_millis);
                        let (expires, purge) = (millis(times.expires), millis(times.purge));
                        known.ended.insert(id, Ended { at: self.trace.now(), expires, purge });
                    }
                } else if let Some(ended) = known.ended.remove(&id) {
                    known.ended_before.insert(id, ended);
                }
            }
            None if before.is_some_and(|before| before.state == State::InProgress) => {
                known.released.insert(id, self.trace.now());
            }
            None => {}
        }
    }

    fn judged(&self, instance: usize, now: Now, hidden: i64) {
        self.sights.judged(now);
        let (at, earliest) = (self.trace.now(), now.earliest.as_millis());
        let mut known = locked(&self.known);
        known.remember(instance, at, now);
        if now.is_held() {
            known.held.insert(at / 1_000);
        }
        let true_time = EPOCH + i64::try_from(at).unwrap_or(0);
        let (stamps, judges) = (now.latest.as_millis() - true_time, earliest - true_time);
        // What is stamped is too early by no more than what no clock can know.
        let stamps = if stamps < 0 { (stamps + hidden).min(0) } else { stamps };
        let least = known.least_lead.map_or(stamps, |least| least.min(stamps));
        (known.least_lead, known.run_up) = (Some(least), known.run_up.max(judges - least));
        match known.earliest.last_mut() {
            Some((_, highest)) if *highest >= earliest => {}
            Some((then, highest)) if *then == at => *highest = earliest,
            _ => known.earliest.push((at, earliest)),
        }
    }

    fn turned(&self, instance: usize, turn: Turn) {
        self.trace.note(Place::Store, format_args!("process {instance}: the store's clock: {turn:?}"));
    }

    fn accepted(&self, off: i64, earliest: Timestamp) {
        if off.abs() <= LOOKS_RIGHT {
            return;
        }
        let wrong = earliest.as_millis() - EPOCH - i64::try_from(self.trace.now()).unwrap_or(0);
        self.trace.note(
            Place::Store,
            format_args!("a clock that is {off} ms off is accepted, and the store's time is {wrong} ms off"),
        );
        let mut known = locked(&self.known);
        let (ahead, behind) = known.accepted;
        known.accepted = (ahead.max(wrong), behind.max(-wrong));
    }

    fn found(&self, owner: Owner, record: &Record, now: Now) {
        if record.state == State::InProgress && !record.times.lease.has_come(now.latest) {
            self.sights.note(Sight::Waits);
            locked(&self.known).waiting.insert(owner, record.operation_id);
        }
    }

    fn overtaken(&self) {
        self.sights.note(Sight::Overtaken);
    }

    fn took_back(&self, key: &RecordKey, record: Option<&Record>, is_whole: bool) {
        let mut known = locked(&self.known);
        let Some(id) = known.last.get(key).copied() else { return };
        self.sights.note(Sight::TakenBack);
        self.trace.note(Place::Store, format_args!("{id}: a write is taken back"));
        let stands = record.filter(|record| record.operation_id == id);
        if stands.is_none_or(|record| !has_ended(record.state)) {
            known.ended.remove(&id);
            if self.is_transaction(key) {
                self.book.pages().take_back(id);
            }
        } else if let Some(ended) = known.ended_before.get(&id).copied() {
            known.ended.entry(id).or_insert(ended);
        }
        known.remarks.retain(|(of, _)| *of != id);
        if !is_past_payment(stands.and_then(|record| record.recovery_point.as_deref())) {
            known.passed.remove(&id);
        }
        if stands.is_some() {
            known.released.remove(&id);
            // With the write goes what was done to it since, and what was done before is there again.
            if is_whole {
                known.damaged.remove(&id);
            } else {
                known.damaged.entry(id).or_insert(self.trace.now());
            }
        }
    }
}

#[cfg(test)]
mod tests;
