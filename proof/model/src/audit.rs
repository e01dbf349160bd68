//! A second opinion on every write that the store carries out, by rules of its own: nothing here asks the state machine.

use crate::config::Config;
use crate::kept::{Kept, Moment};
use crate::proof::Finding;
use crate::rule::Rule;
use crate::state::Writer;
use crate::work::Deed;
use semel::{Origin, Stale, State};

/// The rule that this write breaks.
pub(crate) fn broken(config: &Config, old: Option<Kept>, new: Option<Kept>, writer: Writer) -> Option<Rule> {
    let Some(old) = old else {
        let first = new.is_some_and(|new| new.state == State::InProgress && new.attempt == 1);
        return (!first).then_some(Rule::SecondStart);
    };
    let fixed = new.is_none_or(|new| new.op == old.op && new.altered == old.altered);
    if !fixed {
        return Some(Rule::IdentityChanged);
    }
    match writer {
        Writer::Request(_) => request(config, &old, new),
        Writer::Owner(op, attempt, token, deed) => {
            owner(&old, new, (op, attempt, token) == (old.op, old.attempt, old.owner), deed)
        }
        Writer::Watch => {
            let doubts = new.is_some_and(|new| new.state == State::Unknown && new.owner == old.owner);
            (!(old.state == State::InProgress && old.lease_over && doubts)).then_some(Rule::SecondStart)
        }
        Writer::Poll => {
            let unmoved = new.is_some_and(|new| new.state == State::Unknown && new.owner == old.owner);
            (!(old.state == State::Unknown && unmoved)).then_some(Rule::DoubtWithoutEvidence)
        }
        Writer::Settler(proof) => {
            let about = proof.op == old.op
                && (proof.attempt == old.attempt || matches!(proof.finding, Finding::Completed(_)));
            let in_time = proof.finding != Finding::Absent || old.lease_over;
            let ends = new.is_some_and(|new| new.state.is_final());
            (!(old.state == State::Unknown && about && in_time && ends)).then_some(Rule::DoubtWithoutEvidence)
        }
        Writer::Remark => (new != Some(old)).then_some(Rule::DoubtWithoutEvidence),
        Writer::Reaper => match old.state {
            State::InProgress | State::Unknown => Some(Rule::DoubtWithoutEvidence),
            _ if new.is_none() && old.purge != Moment::Come => Some(Rule::AnswerLost),
            _ => None,
        },
    }
}

fn request(config: &Config, old: &Kept, new: Option<Kept>) -> Option<Rule> {
    let starts = new.is_some_and(|new| new.state == State::InProgress);
    let declared = config.policy.stale != Stale::Unknown;
    let allowed = match (old.state, new) {
        // The work starts again: proved to have done nothing, or declared to be resumed or run again.
        (State::FailedRetryable, Some(next)) if starts => next.attempt == old.attempt + 1,
        (State::InProgress, Some(next)) if starts => {
            declared && old.lease_over && next.attempt == old.attempt + 1 && next.origin == Origin::Doubt
        }
        (State::InProgress, Some(next)) => {
            !declared && old.lease_over && next.state == State::Unknown && next.owner == old.owner
        }
        // It is removed to make room for new work.
        (State::InProgress | State::Unknown, None) => false,
        (_, None) => old.window == Moment::Come,
        _ => false,
    };
    (!allowed).then_some(Rule::SecondStart)
}

fn owner(old: &Kept, new: Option<Kept>, claims: bool, deed: Deed) -> Option<Rule> {
    let ended = new.map(|new| new.state);
    let allowed = match old.state {
        State::InProgress => match ended {
            None => deed == Deed::Release && old.origin == Origin::First && !old.point,
            Some(State::FailedRetryable) => old.origin != Origin::Doubt,
            Some(_) => true,
        },
        State::Unknown => matches!(ended, Some(State::Completed | State::FailedReplayable)),
        _ => false,
    };
    match (claims, allowed) {
        (false, _) => Some(Rule::FencedWrite),
        (true, false) if old.state == State::Unknown => Some(Rule::DoubtWithoutEvidence),
        (true, false) => Some(Rule::SecondStart),
        (true, true) => None,
    }
}
