//! One key whose operations come one after the other: a window that is over makes it new (`expired = "new"`).

use super::{Case, is_outcome, kept};
use crate::log::{Answer, Meaning, Told};
use crate::plan::{BRIEF, Variant};
use std::collections::BTreeMap;

type Heard<'a> = (&'a Told, &'a Answer);

impl<'a> Case<'a> {
    /// What must hold of each operation, and of one after the other.
    pub(super) fn one_key_in_turns(&mut self, variants: &[Variant]) {
        let answers: Vec<Heard<'a>> = variants.iter().flat_map(|variant| self.answers(*variant)).collect();
        let mut turns: BTreeMap<&str, Vec<Heard<'a>>> = BTreeMap::new();
        for (told, answer) in answers.iter().filter(|(_, answer)| is_outcome(answer)) {
            turns.entry(answer.operation_id.as_deref().unwrap_or_default()).or_default().push((told, answer));
        }
        for (operation_id, turn) in &turns {
            self.one_turn(operation_id, turn);
        }
        let pairs = turns.iter().flat_map(|one| turns.iter().map(move |other| (one, other)));
        for ((_, one), (_, other)) in pairs.filter(|(one, other)| one.0 != other.0) {
            self.after_one_another(one, other);
        }
        if answers.iter().any(|(_, answer)| answer.meaning() == Meaning::Expired) {
            self.object("I3", "a key was refused as expired, though it is new then");
        }
        for variant in variants.iter().filter(|variant| self.operation.has(**variant)) {
            if !self.answers(*variant).iter().any(|(_, answer)| answer.meaning().is_definite()) {
                self.object("I4", &format!("{variant:?} has no answer that stays, after healing"));
            }
        }
        self.within_the_window(&answers);
    }

    fn one_turn(&mut self, operation_id: &str, turn: &[Heard<'a>]) {
        let Some((_, first)) = turn.first() else { return };
        let due = usize::from(first.meaning() == Meaning::Paid);
        let charged = self.evidence.charged(operation_id);
        if charged != due {
            self.object(
                "I1",
                &format!("{operation_id} was told {:?}, and charged {charged} times", first.meaning()),
            );
        }
        if let Some((_, other)) = turn.iter().find(|(_, answer)| kept(answer) != kept(first)) {
            self.object(
                "I2",
                &format!("{operation_id} was told {:?}, and also {:?}", kept(first), kept(other)),
            );
        }
        let firsts = turn.iter().filter(|(_, answer)| !answer.replayed).count();
        if firsts > 1 {
            self.object("I2", &format!("{operation_id}: {firsts} answers claim to be the first"));
        }
    }

    /// Once the next operation has an answer, the one before has none any more.
    fn after_one_another(&mut self, one: &[Heard<'a>], other: &[Heard<'a>]) {
        let Some(first) = one.iter().map(|(told, _)| told.heard).min() else { return };
        // Asked for after the first one's answer was there: nobody can say that it came before.
        let later = other.iter().filter(|(told, _)| told.sent > first).map(|(told, _)| told.heard).min();
        if later.is_some_and(|later| one.iter().any(|(told, _)| told.sent > later)) {
            self.object("I3", "an operation whose window was over had an answer again");
        }
    }

    /// Within the window there is the one answer, or no store.
    fn within_the_window(&mut self, answers: &[Heard<'a>]) {
        let outcomes = answers.iter().filter(|(_, answer)| is_outcome(answer));
        let Some((first_told, first)) = outcomes.min_by_key(|(told, _)| told.heard) else { return };
        let begun = self.told.iter().map(|told| told.sent).min().unwrap_or_default();
        let same = |told: &Told, answer: &Answer| {
            told.variant != first_told.variant && answer.meaning() == Meaning::Mismatch
                || told.variant == first_told.variant && kept(answer) == kept(first)
        };
        let sure = begun + self.evidence.time.sure(BRIEF);
        let within = answers.iter().filter(|(told, _)| told.sent > first_told.heard && told.heard < sure);
        let other =
            within.filter(|(told, answer)| !same(told, answer) && answer.meaning() != Meaning::NoStore);
        let other: Vec<_> = other.map(|(_, answer)| answer.meaning()).collect();
        if !other.is_empty() {
            self.object("I3", &format!("there was an answer, and within its window others heard {other:?}"));
        }
    }
}
