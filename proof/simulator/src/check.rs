//! The judgement: what clients were told, who started, and what the provider's ledger has, held against each other.

use crate::book::{Effect, Pages, Start};
use crate::clocks::DRIFT;
use crate::fault::{Fault, Struck};
use crate::log::{Answer, Meaning, Told, Variant};
use crate::machine::DISCIPLINE;
use crate::plan::{Operation, TENANTS, canary};
use crate::rules::{Rule, Work, is_past_payment};
use crate::world::World;
use semel::{Expired, OperationId, State, StoreResponse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

/// How long after the end of its window an answer may be replayed, in milliseconds.
const LATE: i64 = 1_000;

impl World {
    /// The same, with wrong clocks, of which each instance has its own: they may be apart by as much as is discipline.
    fn may_be_late(&self) -> i64 {
        use Fault::{BoottimeStep, ClockDrift, ClockStep, ClockStrobe, StoreClock};
        let clocks = [BoottimeStep, ClockDrift, ClockStep, ClockStrobe, StoreClock];
        let are_right = clocks.iter().all(|fault| !self.faults.has(*fault));
        if are_right { LATE } else { LATE + DISCIPLINE }
    }
}

/// Holds everything against everything. What is wrong, each beginning with the promise that it breaks.
pub(crate) fn judge(world: &World) -> Vec<String> {
    let pages = world.book.pages();
    let told = world.told();
    let mut by_number: BTreeMap<u32, Vec<&Told>> = BTreeMap::new();
    told.iter().for_each(|told| by_number.entry(told.number).or_default().push(told));
    let (mut starts, mut effects) = (BTreeMap::new(), BTreeMap::new());
    for start in &pages.starts {
        let of_key: &mut Vec<&Start> = starts.entry((start.order.number, start.order.tenant)).or_default();
        of_key.push(start);
    }
    for effect in &pages.effects {
        let of_id: &mut Vec<&Effect> = effects.entry(effect.order.id).or_default();
        of_id.push(effect);
    }
    let mut violations = world.auditor.violations();
    for operation in &world.plan {
        let rule = &world.rules[operation.rule];
        let told = by_number.get(&operation.number).map_or(&[][..], Vec::as_slice);
        for tenant in BTreeSet::from([operation.tenant, operation.tenant_of(Variant::Neighbour)]) {
            let starts = starts.get(&(operation.number, tenant)).map_or(&[][..], Vec::as_slice);
            let mut case = Case {
                world,
                pages: &pages,
                operation,
                rule,
                tenant,
                told,
                starts,
                effects: &effects,
                violations: Vec::new(),
            };
            case.judge();
            violations.append(&mut case.violations);
        }
    }
    violations.extend(effects.iter().filter(|(_, of_id)| of_id.len() > 1).map(|(id, of_id)| {
        let attempts: Vec<_> = of_id.iter().map(|effect| effect.order.attempt).collect();
        format!("P1 #{} {id} had its effect by attempts {attempts:?}", of_id[0].order.number)
    }));
    violations.extend(receipts(&pages, &effects));
    violations.extend(ledger(world, &effects));
    violations.extend(clock(world));
    violations.extend(doubt(world));
    violations
}

/// A receipt is written once, and of what was paid.
fn receipts(pages: &Pages, effects: &BTreeMap<OperationId, Vec<&Effect>>) -> Vec<String> {
    let wrong = pages.receipts.iter().filter_map(|(id, written)| {
        let number = written.first()?.number;
        if written.len() > 1 {
            let attempts: Vec<_> = written.iter().map(|order| order.attempt).collect();
            return Some(format!("P1 #{number} {id} had its receipt by attempts {attempts:?}"));
        }
        (!effects.contains_key(id)).then(|| format!("P1 #{number} {id} has a receipt, and was not paid"))
    });
    wrong.collect()
}

/// Clients that hang up, and whatever comes late or again, leave nobody in doubt.
fn doubt(world: &World) -> Option<String> {
    let is_harmless = |(fault, _): &Struck| {
        use Fault::{
            HandlerReleases, HangUp, OperatorAgain, OperatorLate, Refused, Reload, ServiceNothing,
            ServiceReleases, WebhookAgain, WebhookByKey, WebhookEarlier, WebhookLate,
        };
        [
            HandlerReleases,
            HangUp,
            OperatorAgain,
            OperatorLate,
            Refused,
            Reload,
            ServiceNothing,
            ServiceReleases,
        ]
        .contains(fault)
            || [WebhookAgain, WebhookByKey, WebhookEarlier, WebhookLate].contains(fault)
    };
    let id = world.auditor.doubted().filter(|_| world.faults.struck().iter().all(is_harmless))?;
    Some(format!("doubt {id} became unknown, and nothing had struck that leaves doubt"))
}

/// The store's time gains on the true one by steps of its clock that were short enough to be followed, by no more than what is followed of them, and by
/// what operators said was right and was wrong by the time at which the store did as they said.
fn clock(world: &World) -> Option<String> {
    let max_step = signed(world.disk.max_step());
    let steps: i64 = world.machine.steps_ahead().into_iter().map(|step| step.min(max_step)).sum();
    // Across a start a step is followed as well, as nobody knows how long the process was down.
    let starts = i64::try_from(world.started.load(Relaxed)).unwrap_or(i64::MAX);
    let followed = steps.min(max_step.saturating_mul(starts));
    let drifts = world.faults.struck().iter().any(|(fault, _)| *fault == Fault::ClockDrift);
    // Two clocks may drift apart.
    let drift = if drifts { 2 * world.trace.now() * DRIFT / 1_000_000 } else { 0 };
    let most = followed + DISCIPLINE + world.auditor.accepted() + i64::try_from(drift).unwrap_or(i64::MAX);
    let run_up = world.auditor.run_up();
    (run_up > most).then(|| format!("clock: the store's time gained {run_up} ms, and may gain {most} ms"))
}

/// What the store has in the end agrees with the ledger.
fn ledger(world: &World, effects: &BTreeMap<OperationId, Vec<&Effect>>) -> Vec<String> {
    let contents = world.disk.contents();
    let wrong = contents.all().filter_map(|(record, _)| {
        let had = effects.contains_key(&record.operation_id);
        let is_wrong = match record.state {
            State::Completed => !had,
            // Behind a recovery point it is what comes next that did not happen.
            State::FailedRetryable if is_past_payment(record.recovery_point.as_deref()) => !had,
            State::FailedReplayable | State::FailedRetryable => had,
            _ => false,
        };
        is_wrong.then(|| {
            format!("P4 {} is {}, and the ledger has {had} of it", record.operation_id, record.state.as_str())
        })
    });
    wrong.collect()
}

/// One key of one tenant.
struct Case<'a> {
    world: &'a World,
    pages: &'a Pages,
    operation: &'a Operation,
    rule: &'a Rule,
    tenant: u32,
    told: &'a [&'a Told],
    starts: &'a [&'a Start],
    effects: &'a BTreeMap<OperationId, Vec<&'a Effect>>,
    violations: Vec<String>,
}

impl<'a> Case<'a> {
    fn object(&mut self, promise: &str, what: &str) {
        self.violations
            .push(format!("{promise} #{} of tenant {}: {what}", self.operation.number, self.tenant));
    }

    fn judge(&mut self) {
        self.starts();
        let answers: Vec<(&'a Told, &'a Answer)> = self.answers();
        for (told, answer) in &answers {
            self.words(told, answer);
        }
        let mut by_id: BTreeMap<&str, Vec<(&'a Told, &'a Answer)>> = BTreeMap::new();
        for (told, answer) in answers.iter().filter(|(_, answer)| answer.meaning.is_outcome()) {
            let id = answer.operation_id.as_deref().unwrap_or_default();
            by_id.entry(id).or_default().push((told, answer));
        }
        for (id, outcomes) in by_id {
            match id.parse() {
                Ok(id) => self.outcome(id, &outcomes, &answers),
                Err(_) => self.object("answers", "an outcome without an operation id"),
            }
        }
    }

    /// What was told of this key.
    fn answers(&self) -> Vec<(&'a Told, &'a Answer)> {
        let of_tenant = |told: &&&Told| self.operation.tenant_of(told.variant) == self.tenant;
        self.told.iter().filter(of_tenant).filter_map(|told| Some((*told, told.answer.as_ref()?))).collect()
    }

    /// No start without a reservation, and none after another one without a proof.
    fn starts(&mut self) {
        for start in self.starts.iter().filter(|start| !start.reserved) {
            self.object(
                "P5",
                &format!(
                    "{} attempt {} starts, and the store has no such attempt",
                    start.order.id, start.order.attempt
                ),
            );
        }
        for (index, later) in self.starts.iter().enumerate() {
            for earlier in &self.starts[..index] {
                if let Some(why) = self.not_after(earlier, later) {
                    let (first, second) = (&earlier.order, &later.order);
                    self.object(
                        "P1",
                        &format!(
                            "{} attempt {} starts after {} attempt {}: {why}",
                            second.id, second.attempt, first.id, first.attempt
                        ),
                    );
                }
            }
        }
    }

    /// Why the later one must not start; `None`: it may.
    fn not_after(&self, earlier: &Start, later: &Start) -> Option<&'static str> {
        let (first, second) = (&earlier.order, &later.order);
        if first.id == second.id {
            if first.altered != second.altered {
                return Some("one operation for two requests");
            }
            if first.attempt == second.attempt {
                return Some("one attempt starts once");
            }
            let resumes = self.rule.takes_over()
                && matches!(self.rule.work, Work::Service | Work::Deduplicated | Work::Transaction);
            // A late start of an attempt that was proved to do nothing comes to nothing: whoever proved it refuses it.
            let comes_late =
                second.attempt < first.attempt && self.is_proved(first.id, second.attempt, later.at);
            if resumes || comes_late || self.is_proved(first.id, first.attempt, later.at) {
                return None;
            }
            return Some("nobody has proved that the first did nothing");
        }
        // An owner that comes late: a later attempt of its operation had started before the other operation did, and was judged against it.
        let was_overtaken = self.starts.iter().any(|start| {
            let order = &start.order;
            order.id == second.id && order.attempt > second.attempt && start.at <= earlier.at
        });
        if was_overtaken {
            return None;
        }
        if self.world.auditor.was_released(first.id) {
            let had = self.effects.contains_key(&first.id);
            return had.then_some("the first was released, and had its effect");
        }
        let Some(ended) = self.world.auditor.ended(first.id) else {
            return Some("the first has not ended");
        };
        let over = if self.rule.policy().expired == Expired::New { ended.expires } else { ended.purge };
        let earliest = self.world.auditor.earliest_by(later.at);
        (earliest < over).then_some("the window of the first is not over, by any instance's time")
    }

    fn is_proved(&self, id: OperationId, attempt: u32, by: u64) -> bool {
        let proofs = self.pages.proofs.get(&id).map_or(&[][..], Vec::as_slice);
        proofs.iter().any(|proof| proof.at <= by && proof.is_about(attempt))
    }

    /// What one answer says, whatever else was told.
    fn words(&mut self, told: &Told, answer: &Answer) {
        let foreign = (0..TENANTS).filter(|tenant| *tenant != self.tenant).map(canary);
        let text = String::from_utf8_lossy(&answer.body);
        if foreign.into_iter().any(|word| text.contains(&word)) {
            self.object("tenants", &format!("{:?} has words of another tenant: {text}", told.variant));
        }
        let is_damaged = || {
            let started = self.starts.iter().map(|start| start.order.id);
            let heard = self
                .answers()
                .into_iter()
                .filter_map(|(_, answer)| answer.operation_id.as_ref()?.parse().ok());
            // A request that was on its way when the key changed does not know the new one.
            let key_changed =
                || self.pages.key_changes.iter().any(|at| (told.sent..=told.heard).contains(at));
            started.chain(heard).any(|id| self.world.auditor.was_damaged(id))
                || self.world.auditor.was_unseen_damaged(self.pages)
                || key_changed()
        };
        let wrong = match answer.meaning {
            Meaning::Undocumented => Some(format!("{} {text}", answer.status)),
            Meaning::Damaged if !is_damaged() => {
                Some("it is said to be damaged, and nobody has touched it".into())
            }
            Meaning::QuotaExceeded if self.world.quotas == semel::Quotas::default() => {
                Some("there is no quota".into())
            }
            meaning if (told.variant == Variant::Malformed) != (meaning == Meaning::InvalidKey) => {
                Some(format!("{:?} was told {meaning:?}", told.variant))
            }
            Meaning::InProgress | Meaning::Unknown if self.is_of_another(told, answer) => Some(format!(
                "{:?} is told {:?} of another request under its key",
                told.variant, answer.meaning
            )),
            Meaning::Mismatch if !self.operation.has(Variant::Altered) => {
                Some("there was no other request".into())
            }
            _ => None,
        };
        if let Some(what) = wrong {
            self.object("answers", &what);
        }
    }

    /// Whether an answer is about an operation that was reserved by the other body.
    fn is_of_another(&self, told: &Told, answer: &Answer) -> bool {
        let id: Option<OperationId> = answer.operation_id.as_deref().and_then(|id| id.parse().ok());
        let altered = told.variant == Variant::Altered;
        self.starts.iter().any(|start| Some(start.order.id) == id && start.order.altered != altered)
    }

    /// One operation that has ended, as everybody was told.
    fn outcome(
        &mut self,
        id: OperationId,
        outcomes: &[(&'a Told, &'a Answer)],
        answers: &[(&'a Told, &'a Answer)],
    ) {
        self.agrees_with_ledger(id, outcomes);
        let with_bytes: Vec<_> =
            outcomes.iter().filter(|(_, answer)| answer.meaning != Meaning::NotStored).collect();
        let same = |one: &Answer, other: &Answer| {
            (one.status, &one.body, &one.kept) == (other.status, &other.body, &other.kept)
        };
        if let Some(pair) = with_bytes.windows(2).find(|pair| !same(pair[0].1, pair[1].1)) {
            let is_header = (pair[0].1.status, &pair[0].1.body) == (pair[1].1.status, &pair[1].1.body);
            let what = if is_header { "several headers" } else { "several answers" };
            self.object("P2", &format!("{id} has {what}"));
        }
        if with_bytes.iter().any(|(_, answer)| answer.replayed && answer.sets_cookie) {
            self.object("P2", &format!("{id} replays a cookie, which was for one caller"));
        }
        if with_bytes.iter().filter(|(_, answer)| !answer.replayed).count() > 1 {
            self.object("P2", &format!("{id} has several answers that claim to be the first"));
        }
        let damaged = self.world.auditor.damaged(id);
        if with_bytes.iter().any(|(told, _)| damaged.is_some_and(|at| told.sent > at)) {
            self.object("P2", &format!("{id} was damaged, and was replayed all the same"));
        }
        let variant = outcomes[0].0.variant;
        let Some(first) = outcomes.iter().map(|(told, _)| told.heard).min() else { return };
        let Some(ended) = self.world.auditor.ended(id) else {
            self.object("P4", &format!("{id} was told to have ended, and the store does not have it so"));
            return;
        };
        if first < ended.at {
            self.object("P2", &format!("{id} was answered at {first} ms, and stored at {} ms", ended.at));
        }
        let later = answers.iter().filter(|(told, _)| told.sent > first && told.variant == variant);
        for (told, answer) in later {
            let is_within = self.world.auditor.earliest_by(told.heard) < ended.expires;
            let its_own = answer.operation_id.as_deref() == Some(&*id.to_string());
            // An open transaction hides which operation it is.
            let is_hidden = answer.meaning == Meaning::InProgress && answer.operation_id.is_none();
            let may_be = matches!(answer.meaning, Meaning::NoStore | Meaning::Damaged)
                || is_hidden
                || (answer.meaning.is_outcome() && its_own);
            if is_within && !may_be {
                self.object(
                    "P2",
                    &format!(
                        "{id} had its answer, and {:?} was told {:?} later",
                        told.variant, answer.meaning
                    ),
                );
            }
            let keeps_all = self.rule.policies().iter().all(|policy| {
                policy.store_response == StoreResponse::Full && policy.body_retention >= policy.retention
            });
            let was_damaged = self.world.auditor.was_damaged(id);
            let is_lost = answer.meaning == Meaning::NotStored && its_own && !was_damaged;
            if is_within && is_lost && keeps_all {
                self.object("P2", &format!("{id} was kept, and is told not to be"));
            }
            let late = self.world.auditor.earliest_by(told.sent).saturating_sub(ended.expires);
            let is_late =
                late > self.world.may_be_late() && !self.world.auditor.was_held(told.sent, told.heard);
            if is_late && answer.meaning.is_outcome() && its_own {
                self.object("windows", &format!("{id} had an answer {late} ms after its window"));
            }
        }
    }

    fn agrees_with_ledger(&mut self, id: OperationId, outcomes: &[(&'a Told, &'a Answer)]) {
        let of_id = self.effects.get(&id).map_or(&[][..], Vec::as_slice);
        for (told, answer) in outcomes {
            let expected = match answer.meaning {
                Meaning::Paid => Some(1),
                Meaning::Declined => Some(0),
                _ => None,
            };
            if expected.is_some_and(|expected| expected != of_id.len()) {
                self.object(
                    "P4",
                    &format!("{id} was told {:?}, and had {} effects", answer.meaning, of_id.len()),
                );
            }
            let is_by_handler = answer.meaning == Meaning::Paid
                && String::from_utf8_lossy(&answer.body).contains(r#""via":"service""#);
            if is_by_handler && self.rule.receipt && !self.pages.receipts.contains_key(&id) {
                self.object("P4", &format!("{id} was told by its handler to be paid, and has no receipt"));
            }
            let is_of_another = |effect: &&Effect| {
                effect.order.altered != (told.variant == Variant::Altered)
                    || effect.order.tenant != self.tenant
            };
            if of_id.iter().any(is_of_another) {
                self.object("P3", &format!("{:?} was told of {id}, which was another request", told.variant));
            }
        }
    }
}

fn signed(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
