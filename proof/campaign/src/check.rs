//! The judgement: what clients were told, held against the provider's ledger. Pure, so that doctored logs can be given to it.

use crate::config::WAIT;
use crate::damage::Damaged;
use crate::linear::is_linearizable;
use crate::log::{Answer, Meaning, Told};
use crate::off::StoreTime;
use crate::plan::{BRIEF, Operation, Variant, Window, foreign_canaries};
use crate::profile::Profile;
use serde_json::Value;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How much later than its end a window may still be seen open: it is judged to the second.
const WINDOW_SLACK: Duration = Duration::from_secs(2);

/// What there is besides the clients' words.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// What the round went by.
    pub(crate) profile: Profile,
    /// How often each reference was charged.
    pub(crate) ledger: BTreeMap<String, u32>,
    /// By which attempts of each operation, whose id is in hexadecimal digits alone.
    pub(crate) charged: BTreeMap<String, Vec<i64>>,
    /// What Semel says is open at the end.
    pub(crate) open: Value,
    /// The stored answers that were damaged, by account and key.
    pub(crate) damaged: BTreeMap<(u32, String), Damaged>,
    /// How far the store's time may have been from the true one.
    pub(crate) time: StoreTime,
    /// Whether `semel rekey` said, once everything had settled, that nothing needs the old keys; `None`: it was not run.
    pub(crate) keys_replaced: Option<bool>,
    /// Whether gateways were asked to end, which lets go of those who wait.
    pub(crate) were_ended: bool,
}

impl Evidence {
    fn charged(&self, operation_id: &str) -> usize {
        self.charged.get(&operation_id.replace('-', "")).map_or(0, Vec::len)
    }
}

/// What the judgement came to.
#[derive(Default, Debug)]
pub(crate) struct Judged {
    /// What should not have happened. Empty, or the campaign has failed.
    pub(crate) violations: Vec<String>,
    /// How often each answer was given; `None`: no answer came.
    pub(crate) answers: BTreeMap<Option<Meaning>, usize>,
    pub(crate) replays: usize,
    pub(crate) effects: u32,
}

/// Operations whose plain request has an answer that stays.
pub(crate) fn definite<O: Borrow<Operation>>(plan: &[O], told: &[Told]) -> usize {
    let known: BTreeSet<u32> = told
        .iter()
        .filter(|told| told.variant == Variant::Plain)
        .filter(|told| told.answer.as_ref().is_some_and(|answer| answer.meaning().is_definite()))
        .map(|told| told.operation)
        .collect();
    plan.iter().filter(|operation| known.contains(&(*operation).borrow().number)).count()
}

/// Holds everything against everything.
pub(crate) fn judge<O: Borrow<Operation>>(plan: &[O], told: &[Told], evidence: &Evidence) -> Judged {
    let mut judged = Judged::default();
    let mut by_operation: BTreeMap<u32, Vec<&Told>> = BTreeMap::new();
    for told in told {
        let meaning = told.answer.as_ref().map(Answer::meaning);
        *judged.answers.entry(meaning).or_default() += 1;
        judged.replays += usize::from(told.answer.as_ref().is_some_and(|answer| answer.replayed));
        by_operation.entry(told.operation).or_default().push(told);
    }
    let mut expected = BTreeSet::new();
    for operation in plan {
        let operation = operation.borrow();
        let told = by_operation.get(&operation.number).map_or(&[][..], Vec::as_slice);
        let mut case = Case { operation, told, evidence, violations: Vec::new() };
        case.judge();
        judged.violations.append(&mut case.violations);
        expected.extend(Variant::EXECUTABLE.map(|variant| operation.reference(variant)));
    }
    if evidence.keys_replaced == Some(false) {
        judged
            .violations
            .push("I14 everything has settled, and the old encryption keys cannot be taken away".to_owned());
    }
    for (operation_id, attempts) in evidence.charged.iter().filter(|(_, attempts)| attempts.len() > 1) {
        judged
            .violations
            .push(format!("I1 {operation_id}: one operation was charged by attempts {attempts:?}"));
    }
    for (reference, charged) in &evidence.ledger {
        judged.effects += charged;
        if !expected.contains(reference) {
            judged.violations.push(format!("I6 {reference}: charged, though nobody may ask for it"));
        }
    }
    for state in ["in_progress", "unknown", "dead_letters"] {
        if evidence.open[state] != 0 {
            judged
                .violations
                .push(format!("I4 after healing {} operations are {state}", evidence.open[state]));
        }
    }
    judged
}

/// One operation.
struct Case<'a> {
    operation: &'a Operation,
    told: &'a [&'a Told],
    evidence: &'a Evidence,
    violations: Vec<String>,
}

impl<'a> Case<'a> {
    fn object(&mut self, rule: &str, what: &str) {
        self.violations.push(format!("{rule} operation {}: {what}", self.operation.number));
    }

    fn charged(&self, variant: Variant) -> u32 {
        self.evidence.ledger.get(&self.operation.reference(variant)).copied().unwrap_or_default()
    }

    fn answers(&self, variant: Variant) -> Vec<(&'a Told, &'a Answer)> {
        let of_variant = self.told.iter().filter(|told| told.variant == variant);
        of_variant.filter_map(|told| Some((*told, told.answer.as_ref()?))).collect()
    }

    fn judge(&mut self) {
        // A key of an account, and every body that came under it.
        self.one_key(&[Variant::Plain, Variant::Altered]);
        self.one_key(&[Variant::Neighbour]);
        for (_, answer) in self.answers(Variant::Malformed) {
            let meaning = answer.meaning();
            if meaning != Meaning::InvalidKey {
                self.object("I6", &format!("a malformed key got {meaning:?}"));
            }
        }
        for variant in [Variant::Plain, Variant::Altered, Variant::Neighbour, Variant::Malformed] {
            self.words(variant);
        }
    }

    /// Whether the key is new once its window is over.
    fn renews(&self) -> bool {
        self.evidence.profile.renews() && self.operation.window == Window::Brief
    }

    fn one_key(&mut self, variants: &[Variant]) {
        let history: Vec<_> =
            self.told.iter().copied().filter(|told| variants.contains(&told.variant)).collect();
        if !is_linearizable(&history, self.renews()) {
            self.object("I9", &format!("what was told of {variants:?} is not linearizable"));
        }
        if self.renews() {
            self.one_key_in_turns(variants);
            return;
        }
        let effects: u32 = variants.iter().map(|variant| self.charged(*variant)).sum();
        if effects > 1 {
            self.object("I1", &format!("charged {effects} times under {variants:?}"));
        }
        let won: Vec<Variant> =
            variants.iter().copied().filter(|variant| self.was_executed(*variant)).collect();
        if won.len() > 1 {
            self.object("I6", &format!("one key stood for {won:?}"));
        }
        let firsts = variants
            .iter()
            .flat_map(|variant| self.answers(*variant))
            .filter(|(_, answer)| is_outcome(answer) && !answer.replayed);
        let firsts = firsts.count();
        if firsts > 1 {
            self.object("I2", &format!("{firsts} answers claim to be the first"));
        }
        for variant in variants {
            self.outcome(*variant);
        }
    }

    /// Whether an answer says so.
    fn was_executed(&self, variant: Variant) -> bool {
        self.answers(variant).iter().any(|(_, answer)| is_outcome(answer))
    }

    fn outcome(&mut self, variant: Variant) {
        let answers = self.answers(variant);
        let charged = self.charged(variant);
        let executed: Vec<_> = answers.iter().filter(|(_, answer)| is_outcome(answer)).collect();
        self.window(variant, &answers);
        self.damage(variant, &answers);
        let Some((first_told, first)) = executed.iter().min_by_key(|(told, _)| told.heard) else {
            let heard = |meaning| answers.iter().any(|(_, answer)| answer.meaning() == meaning);
            // Another body has the key, or had it while this was asked for: a reservation under which nothing ran is taken back.
            let refused = heard(Meaning::Mismatch);
            let over = heard(Meaning::Expired) || heard(Meaning::Damaged);
            if refused && !over && charged != 0 {
                self.object("I1", &format!("{variant:?} was refused, and charged {charged} times"));
            }
            if !refused && !over && self.operation.has(variant) {
                self.object("I4", &format!("{variant:?} has no answer that stays, after healing"));
            }
            return;
        };
        let due = u32::from(first.meaning() == Meaning::Paid);
        if charged != due {
            self.object(
                "I1",
                &format!("{variant:?} was told {:?}, and charged {charged} times", first.meaning()),
            );
        }
        for (_, answer) in executed.iter().filter(|(_, answer)| kept(answer) != kept(first)) {
            self.object(
                "I2",
                &format!("{variant:?} was told {:?}, and also {:?}", kept(first), kept(answer)),
            );
        }
        // Once it was told, nobody who asks afterwards is told anything else, but that the store cannot be reached.
        for (_, answer) in answers.iter().filter(|(told, _)| told.sent > first_told.heard) {
            if is_outcome(answer) && !answer.replayed {
                self.object("I2", &format!("{variant:?} got an old answer that does not say so"));
            }
            // Windows and damage are judged by themselves.
            let may_be = [Meaning::NoStore, Meaning::Expired, Meaning::Damaged];
            if !is_outcome(answer) && !may_be.contains(&answer.meaning()) {
                self.object(
                    "I3",
                    &format!("{variant:?} had its answer, and was told {:?} later", answer.meaning()),
                );
            }
        }
    }

    /// A window that is over is over, and not before its time.
    fn window(&mut self, variant: Variant, answers: &[(&'a Told, &'a Answer)]) {
        let of = |wanted: fn(&Answer) -> bool| answers.iter().filter(move |(_, answer)| wanted(answer));
        let expired = || of(|answer| answer.meaning() == Meaning::Expired);
        if self.operation.window == Window::Day {
            if expired().next().is_some() {
                self.object("I3", &format!("{variant:?} is refused as expired within its window"));
            }
            return;
        }
        if let Some((over, _)) = expired().min_by_key(|(told, _)| told.heard)
            && of(is_outcome).any(|(told, _)| told.sent > over.heard)
        {
            self.object("I3", &format!("{variant:?} was expired, and had an answer again"));
        }
        let begun = self.told.iter().map(|told| told.sent).min().unwrap_or_default();
        let sure = self.evidence.time.sure(BRIEF);
        if expired().any(|(told, _)| told.heard < begun + sure) {
            self.object("I3", &format!("{variant:?} was expired before its time"));
        }
        // Stamped by a clock that is ahead, it lasts for as much longer.
        if self.evidence.time != StoreTime::True {
            return;
        }
        let last = of(is_outcome).map(|(told, _)| told.heard).min().map(|heard| heard + BRIEF + WINDOW_SLACK);
        if last.is_some_and(|last| of(is_outcome).any(|(told, answer)| answer.replayed && told.sent > last)) {
            self.object("I3", &format!("{variant:?} had an answer after its window"));
        }
    }

    /// What was damaged is said to be, and nothing else is.
    fn damage(&mut self, variant: Variant, answers: &[(&'a Told, &'a Answer)]) {
        let key = (self.operation.tenant_of(variant), self.operation.key.clone());
        let damaged = self.evidence.damaged.get(&key);
        let said = answers.iter().filter(|(_, answer)| answer.meaning() == Meaning::Damaged);
        if said.clone().any(|(told, _)| damaged.is_none_or(|damaged| told.heard < damaged.begun)) {
            self.object("I10", &format!("{variant:?} is said to be damaged, and nobody has touched it"));
        }
        let replays = answers.iter().filter(|(_, answer)| is_outcome(answer));
        if damaged.is_some_and(|damaged| replays.clone().any(|(told, _)| told.sent > damaged.done)) {
            self.object("I10", &format!("{variant:?} was damaged, and had an answer all the same"));
        }
    }

    /// Whether duplicates wait before they hear that the first request is at work. What is taken back lets them go: only a key of which nobody heard
    /// anything but "in progress" and its outcome was never taken back.
    fn waits(&self) -> bool {
        let plainly = |told: &&Told| {
            let meaning = told.answer.as_ref().map(Answer::meaning);
            matches!(meaning, Some(Meaning::Paid | Meaning::Declined | Meaning::InProgress))
        };
        self.evidence.profile == Profile::Wait && !self.evidence.were_ended && self.told.iter().all(plainly)
    }

    /// What is in the answers, whatever they mean.
    fn words(&mut self, variant: Variant) {
        let (own, tenant) = (self.operation.reference(variant), self.operation.tenant_of(variant));
        for (told, answer) in self.answers(variant) {
            match answer.meaning() {
                Meaning::Undocumented => {
                    self.object("answers", &format!("{variant:?} got {} {}", answer.status, answer.body));
                }
                Meaning::InProgress | Meaning::Unknown if self.evidence.profile == Profile::Accepted => {
                    self.object(
                        "answers",
                        &format!("{variant:?} got {}, where 202 is the rule", answer.status),
                    );
                }
                Meaning::Accepted if self.evidence.profile != Profile::Accepted => {
                    self.object("answers", &format!("{variant:?} got 202, where that is not the rule"));
                }
                Meaning::InProgress if self.waits() && told.heard - told.sent < WAIT => {
                    self.object(
                        "answers",
                        &format!("{variant:?} did not wait: {:?}", told.heard - told.sent),
                    );
                }
                Meaning::Paid | Meaning::Declined if answer.json()["reference"] != own.as_str() => {
                    self.object("I5", &format!("{variant:?} got the answer of another: {}", answer.body));
                }
                _ => {}
            }
            if foreign_canaries(tenant).any(|canary| answer.body.contains(&canary)) {
                self.object("I5", &format!("{variant:?} heard of another account: {}", answer.body));
            }
        }
    }
}

mod turns;

/// Whether the operation is over by this answer: these are kept, and replayed.
fn is_outcome(answer: &Answer) -> bool {
    matches!(answer.meaning(), Meaning::Paid | Meaning::Declined)
}

/// What every replay has to be the same in.
fn kept(answer: &Answer) -> (u16, &str, Option<&str>, &str) {
    (answer.status, &answer.content_type, answer.operation_id.as_deref(), &answer.body)
}

#[cfg(test)]
mod tests;
