//! Whether a write is a step that the state machine allows. What an actor brought along is read off the write itself; then the same actor, asked
//! again, has to come to the very same write.

use crate::rules::Rule;
use crate::store::Write;
use semel::transition::{
    About, Act, Arrival, Arrived, Change, Claim, Evidence, Match, Polling, Reservation, Settlement, Windows,
    act, arrive, ask_as_well, poll, reap, remark, reserve, rewrite, settle, watch,
};
use semel::{Actor, Draft, Happening, HistoryEntry, Now, Policy, Record, State, When};
use std::time::Duration;

/// What a writer went by: its rules, how often outcomes are asked about, and the time, now and before.
pub(crate) struct Case<'a, T> {
    pub(crate) rule: &'a Rule,
    pub(crate) now: Now,
    /// What its process went by before, the last first: most writes are right without it.
    pub(crate) told: T,
}

/// What is wrong with a write, by whichever configuration its process has.
pub(crate) fn check<T: Iterator<Item = Now> + Clone>(write: &Write<'_>, case: &Case<'_, T>) -> Verdict {
    let [first, other] = case.rule.policies();
    by(write, first, case).or_else(|why| by(write, other, case).map_err(|_| why))
}

type Verdict = Result<(), String>;

fn by<T: Iterator<Item = Now> + Clone>(write: &Write<'_>, policy: &Policy, case: &Case<'_, T>) -> Verdict {
    match (write.before, write.draft) {
        (None, Some(draft)) => reserved(draft, policy),
        (Some(before), Some(draft)) => swapped(before, draft, write.history, policy, case),
        (Some(before), None) => removed(before, policy, case.now),
        (None, None) => Err("nothing was written".into()),
    }
}

fn reserved(draft: &Draft, policy: &Policy) -> Verdict {
    let reservation = Reservation {
        key: draft.key.clone(),
        operation_id: draft.operation_id,
        fingerprint: draft.fingerprint,
        recipe: draft.recipe,
        owner: draft.owner,
    };
    if reserve(reservation, policy) == *draft {
        Ok(())
    } else {
        Err("it was not reserved as a first request reserves".into())
    }
}

fn removed(before: &Record, policy: &Policy, now: Now) -> Verdict {
    let arrival = Arrival { matches: Match::Same, owner: before.owner, policy };
    let windows = Windows::from(policy);
    let allowed = act(before, &Claim::of(before), &Act::Release { windows }) == Ok(Change::Remove)
        || reap(before, now.earliest) == Ok(Change::Remove)
        || matches!(arrive(before, &arrival, now), Arrived::Forgotten)
        || before.due().is_some_and(|(kind, at)| kind == semel::DueKind::Purge && at.has_come(now.earliest));
    if allowed { Ok(()) } else { Err(format!("{} was removed before its time", before.state.as_str())) }
}

fn swapped<T: Iterator<Item = Now> + Clone>(
    before: &Record,
    draft: &Draft,
    history: Option<&HistoryEntry>,
    policy: &Policy,
    case: &Case<'_, T>,
) -> Verdict {
    let attempts = case.rule.polls.map(|(attempts, _)| attempts);
    let by_others = |now: Now| by_others(before, draft, history, (policy, attempts), now);
    let is_it = |change: &Change| match change {
        Change::Put { next, history: told } => **next == *draft && told.as_ref() == history,
        Change::Remove => false,
    };
    // What was decided was decided a little earlier.
    let allowed = by_owner(before, draft, history, policy).iter().any(is_it)
        || [0, 1, 3, 10, 60].into_iter().any(|seconds| {
            by_others(earlier(case.now, Duration::from_secs(seconds))).iter().any(is_it)
        })
        // Or when the clock was not yet known to have stepped.
        || case.told.clone().any(|now| by_others(now).iter().any(is_it));
    if allowed {
        return Ok(());
    }
    let (from, to) = (before.state.as_str(), draft.state.as_str());
    Err(format!("no actor may turn {from} v{} into {to} v{} ({history:?})", before.version, draft.version))
}

fn earlier(now: Now, by: Duration) -> Now {
    let millis = i64::try_from(by.as_millis()).unwrap_or(0);
    let back = |at: semel::Timestamp| semel::Timestamp::from_millis(at.as_millis() - millis);
    Now { earliest: back(now.earliest), latest: back(now.latest), ..now }
}

/// What the owner can have done.
fn by_owner(before: &Record, draft: &Draft, history: Option<&HistoryEntry>, policy: &Policy) -> Vec<Change> {
    let windows = Windows::from(policy);
    let (response, resource) = (draft.response.clone(), draft.resource.clone());
    let lease = if let When::In(lease) = draft.times.lease { lease } else { policy.lease };
    let error = draft.last_error.clone().unwrap_or_default();
    let acts = match draft.state {
        State::InProgress => {
            let (point, checkpoint) =
                (draft.recovery_point.clone().unwrap_or_default(), draft.checkpoint.clone());
            vec![Act::Extend { lease }, Act::Advance { point, checkpoint, lease }]
        }
        State::Completed => vec![Act::Complete { response, resource, windows }],
        State::FailedReplayable => vec![Act::Fail { response, resource, windows }],
        State::FailedRetryable => vec![Act::Retryable { error, windows }, Act::Release { windows }],
        State::Unknown => vec![Act::Doubt { error, settling: policy.settling }],
        // `Expired`, and whatever a later version adds, is never what an owner writes.
        _ => vec![],
    };
    let by_somebody_else = history.is_some_and(|entry| entry.actor != Actor::Owner);
    if by_somebody_else {
        return Vec::new();
    }
    acts.iter().filter_map(|it| act(before, &Claim::of(before), it).ok()).collect()
}

/// What everybody else can have done.
fn by_others(
    before: &Record,
    draft: &Draft,
    history: Option<&HistoryEntry>,
    (policy, attempts): (&Policy, Option<u32>),
    now: Now,
) -> Vec<Change> {
    let arrival = Arrival { matches: Match::Same, owner: draft.owner, policy };
    let mut changes = Vec::new();
    if let Arrived::Take(change) | Arrived::Doubt(change) = arrive(before, &arrival, now) {
        changes.push(change);
    }
    changes.extend(watch(before, policy, now));
    changes.extend(reap(before, now.earliest));
    changes.extend(ask_as_well(before));
    if let Some(attempts) = attempts {
        let next = if let Some(When::In(next)) = draft.times.reconcile { next } else { Duration::ZERO };
        changes.extend(poll(before, &Polling { attempts, next }, now.earliest));
    }
    if let Some(entry) = history {
        changes.push(remark(before, entry.actor.clone(), entry.note.clone()));
        changes.extend(settled(before, draft, entry, policy, now));
    } else {
        changes.push(rewrite(before, draft.response.clone(), draft.checkpoint.clone()));
    }
    changes
}

fn settled(
    before: &Record,
    draft: &Draft,
    entry: &HistoryEntry,
    policy: &Policy,
    now: Now,
) -> Option<Change> {
    let (response, resource) = (draft.response.clone(), None);
    let evidence = match entry.happening {
        Happening::SettledCompleted => Evidence::Completed { response, resource },
        Happening::SettledFailed => Evidence::Failed { response, resource },
        Happening::SettledNotExecuted => match entry.actor {
            // A person has seen to it that nobody is left; anybody else has to wait for the lease.
            Actor::Operator(_) => Evidence::NotExecuted,
            _ => Evidence::Absent,
        },
        _ => return None,
    };
    let settlement = Settlement {
        settler: draft.owner,
        actor: entry.actor.clone(),
        evidence,
        note: entry.note.clone(),
        windows: Windows::from(policy),
    };
    settle(before, &About::of(before), &settlement, now.earliest).ok()
}
