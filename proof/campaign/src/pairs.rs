//! Which faults struck while records were in which state.

use crate::fault::Fault;
use std::collections::BTreeMap;
use std::fmt;

/// What a record can be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum State {
    InProgress,
    Completed,
    Failed,
    Retryable,
    Unknown,
    Expired,
}

impl State {
    pub(crate) const ALL: [Self; 6] =
        [Self::InProgress, Self::Completed, Self::Failed, Self::Retryable, Self::Unknown, Self::Expired];

    /// As stores spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed_replayable",
            Self::Retryable => "failed_retryable",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How many records are in each state.
pub(crate) type Census = BTreeMap<State, u32>;

/// How often each fault struck while there were records in each state that it could touch.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pairs(BTreeMap<(Fault, State), u32>);

impl Pairs {
    /// A fault, and what there was when it struck.
    pub(crate) fn note(&mut self, fault: Fault, there: &Census) {
        for (state, count) in there {
            if *count > 0 && impossible(fault, *state).is_none() {
                *self.0.entry((fault, *state)).or_default() += 1;
            }
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (pair, count) in &other.0 {
            *self.0.entry(*pair).or_default() += count;
        }
    }

    pub(crate) fn hit(&self, fault: Fault, state: State) -> u32 {
        self.0.get(&(fault, state)).copied().unwrap_or_default()
    }

    /// What could have been hit, and was not.
    pub(crate) fn missed(&self, faults: impl Iterator<Item = Fault>) -> Vec<(Fault, State)> {
        let pairs = faults.flat_map(|fault| State::ALL.map(|state| (fault, state)));
        pairs
            .filter(|(fault, state)| impossible(*fault, *state).is_none() && self.hit(*fault, *state) == 0)
            .collect()
    }
}

/// Why a fault cannot touch a record in this state.
pub(crate) fn impossible(fault: Fault, state: State) -> Option<&'static str> {
    match (fault, state) {
        (Fault::FlipBit, State::Completed | State::Failed) => None,
        (Fault::FlipBit, _) => Some("there is no answer in the record in which a bit could be flipped"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_hit_by_a_fault_while_there_is_a_record_in_that_state() {
        let mut pairs = Pairs::default();
        pairs.note(Fault::KillGateway, &[(State::Unknown, 2), (State::Failed, 0)].into());
        assert_eq!(pairs.hit(Fault::KillGateway, State::Unknown), 1);
        let missed = pairs.missed([Fault::KillGateway, Fault::FlipBit].into_iter());
        assert_eq!(missed.len(), 5 + 2, "{missed:?}");
        assert!(missed.contains(&(Fault::KillGateway, State::Failed)));
        assert!(!missed.contains(&(Fault::FlipBit, State::Unknown)));
    }
}
