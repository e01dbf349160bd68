//! What all rounds on one store came to.

use crate::check::Judged;
use crate::fault::Fault;
use crate::log::Meaning;
use crate::pairs::Pairs;
use crate::profile::Profile;
use crate::run::{Result, Round};
use crate::scene::Scene;
use crate::store::StoreKind;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Violations that are kept word for word. All are counted.
const TOLD: usize = 50;

/// What the rounds of one profile came to.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Row {
    pub(crate) rounds: u32,
    pub(crate) operations: u64,
    pub(crate) requests: u64,
    pub(crate) faults: u64,
    pub(crate) starts: u64,
    pub(crate) effects: u64,
    pub(crate) settled: u64,
    pub(crate) refused: u64,
    pub(crate) violations: u64,
    pub(crate) took: Duration,
}

/// The sum of all rounds on one store.
pub(crate) struct Tally {
    pub(crate) store: StoreKind,
    pub(crate) first_seed: u64,
    pub(crate) rounds: BTreeMap<Scene, u32>,
    pub(crate) profiles: BTreeMap<Profile, Row>,
    pub(crate) operations: u64,
    pub(crate) definite: u64,
    pub(crate) effects: u64,
    pub(crate) replays: u64,
    pub(crate) answers: BTreeMap<Option<Meaning>, u64>,
    pub(crate) faults: BTreeMap<Fault, u64>,
    possible: BTreeSet<Fault>,
    pub(crate) pairs: Pairs,
    pub(crate) armed: BTreeSet<String>,
    pub(crate) reached: BTreeSet<String>,
    /// Stored answers in which a bit was flipped.
    pub(crate) damaged: u64,
    /// Encryption keys that were replaced and taken away.
    pub(crate) keys_taken_away: u64,
    pub(crate) violations: u64,
    pub(crate) by_rule: BTreeMap<String, u64>,
    /// The first of them, with the seed of their round.
    pub(crate) told: Vec<(u64, String)>,
    pub(crate) took: Duration,
}

impl Tally {
    pub(crate) fn new(store: StoreKind, first_seed: u64) -> Self {
        Self {
            store,
            first_seed,
            rounds: BTreeMap::new(),
            profiles: BTreeMap::new(),
            keys_taken_away: 0,
            operations: 0,
            definite: 0,
            effects: 0,
            replays: 0,
            answers: BTreeMap::new(),
            faults: BTreeMap::new(),
            possible: BTreeSet::new(),
            pairs: Pairs::default(),
            armed: BTreeSet::new(),
            reached: BTreeSet::new(),
            damaged: 0,
            violations: 0,
            by_rule: BTreeMap::new(),
            told: Vec::new(),
            took: Duration::ZERO,
        }
    }

    pub(crate) fn add(&mut self, round: &Round, result: Result) {
        let Result { judged, done, reached, definite, starts, settled, refused, took } = result;
        let Judged { violations, answers, replays, effects } = judged;
        *self.rounds.entry(round.scene).or_default() += 1;
        let row = self.profiles.entry(round.profile).or_default();
        row.rounds += 1;
        row.operations += u64::from(round.operations);
        row.requests += answers.values().sum::<usize>() as u64;
        row.faults += u64::from(done.counts.values().sum::<u32>());
        row.starts += starts as u64;
        row.effects += u64::from(effects);
        row.settled += settled;
        row.refused += refused;
        row.violations += violations.len() as u64;
        row.took += took;
        self.keys_taken_away += u64::from(done.keys_taken_away);
        let possible = Fault::possible(
            round.scene,
            round.profile,
            round.store == StoreKind::Postgres,
            round.redis.is_some(),
        )
        .into_iter();
        self.possible.extend(possible.filter(|fault| round.only.is_empty() || round.only.contains(fault)));
        self.operations += u64::from(round.operations);
        self.definite += definite as u64;
        self.effects += u64::from(effects);
        self.replays += replays as u64;
        for (meaning, count) in answers {
            *self.answers.entry(meaning).or_default() += count as u64;
        }
        for (fault, count) in done.counts {
            *self.faults.entry(fault).or_default() += u64::from(count);
        }
        self.pairs.add(&done.pairs);
        self.armed.extend(done.armed);
        self.reached.extend(reached);
        self.damaged += done.damaged.len() as u64;
        self.violations += violations.len() as u64;
        for violation in &violations {
            let rule = violation.split(' ').next().unwrap_or_default();
            *self.by_rule.entry(rule.to_owned()).or_default() += 1;
        }
        let room = TOLD.saturating_sub(self.told.len());
        self.told.extend(violations.into_iter().take(room).map(|violation| (round.seed, violation)));
        self.took += took;
    }

    pub(crate) fn requests(&self) -> u64 {
        self.answers.values().sum()
    }

    pub(crate) fn fault_count(&self) -> u64 {
        self.faults.values().sum()
    }

    /// The share of operations that came to a definite answer while things went wrong.
    pub(crate) fn definite_share(&self) -> f64 {
        self.definite as f64 / (self.operations.max(1) as f64)
    }

    /// All faults that could have struck in the scenes that were played.
    pub(crate) fn possible_faults(&self) -> BTreeSet<Fault> {
        self.possible.clone()
    }
}
