//! What has to happen in some runs: a simulator in which nobody ever takes over shows nothing about taking over.

use crate::log::{Meaning, Told};
use crate::rules::{RECEIPT, Rule};
use crate::store::Write;
use semel::{Actor, Draft, Expired, Happening, InFlight, Now, Origin, Record, Stale, State};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! sights {
    ($($name:ident = $text:literal,)*) => {
        /// Something that happens in some runs.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Sight { $($name,)* }

        const TEXTS: &[&str] = &[$($text,)*];
    };
}

sights! {
    TakenOver = "a lease that ran out is taken over",
    Retried = "what did nothing is tried again",
    Released = "a reservation is released",
    Renewed = "a key is new work after its window",
    Extended = "a lease is extended",
    Advanced = "a recovery point is committed",
    DoubtedByOwner = "an owner says that the outcome is unknown",
    DoubtedByOthers = "others find that the outcome is unknown",
    Asked = "a question is claimed",
    DeadLetter = "questions are used up",
    Refused = "evidence changes nothing",
    CompletedByPoll = "a poll settles as completed",
    CompletedByWebhook = "a webhook settles as completed",
    CompletedByOperator = "an operator settles as completed",
    FailedByPoll = "a poll settles as failed",
    FailedByWebhook = "a webhook settles as failed",
    FailedByOperator = "an operator settles as failed",
    NotExecutedByPoll = "a poll settles as not executed",
    NotExecutedByWebhook = "a webhook settles as not executed",
    NotExecutedByOperator = "an operator settles as not executed",
    LateWord = "an owner's word comes after doubt",
    Tombstone = "a window ends in a tombstone",
    Removed = "a key is forgotten",
    Rewritten = "a record is rewritten by another key",
    Held = "a clock hold is open",
    TakenBack = "a crash takes a write back",
    Overtaken = "a write is refused, as another came first",
    SecondPhase = "a second phase is committed",
    Woken = "an owner comes back with its last word when another attempt has begun",
    Waits = "a request finds an operation in progress",
}

/// How often each happened.
pub(crate) struct Sights(Vec<AtomicU64>);

impl Default for Sights {
    fn default() -> Self {
        Self(TEXTS.iter().map(|_| AtomicU64::new(0)).collect())
    }
}

impl Sights {
    pub(crate) fn note(&self, sight: Sight) {
        self.0[sight as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn judged(&self, now: Now) {
        if now.is_held() {
            self.note(Sight::Held);
        }
    }

    pub(crate) fn wrote(&self, write: &Write<'_>) {
        if let Some(sight) = sight(write) {
            self.note(sight);
        }
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = (String, u64)> {
        let count = |(text, count): (&&str, &AtomicU64)| ((*text).to_owned(), count.load(Relaxed));
        TEXTS.iter().zip(&self.0).map(count)
    }
}

fn sight(write: &Write<'_>) -> Option<Sight> {
    use State::{Completed, FailedReplayable, FailedRetryable, InProgress, Unknown};
    let before = write.before?;
    let Some(draft) = write.draft else {
        return Some(if before.state == InProgress { Sight::Released } else { Sight::Removed });
    };
    if draft.attempt != before.attempt {
        return Some(if draft.origin == Origin::Doubt { Sight::TakenOver } else { Sight::Retried });
    }
    if write.history.is_some_and(|entry| entry.happening == Happening::Remarked) {
        return Some(Sight::Refused);
    }
    match (before.state, draft.state) {
        (InProgress, InProgress) if is_second_phase(before, draft) => Some(Sight::SecondPhase),
        (InProgress, InProgress) => Some(match before.recovery_point == draft.recovery_point {
            true => Sight::Extended,
            false => Sight::Advanced,
        }),
        (InProgress, Unknown) => {
            let is_owners = write.history.is_none_or(|entry| entry.actor == Actor::Owner);
            Some(if is_owners { Sight::DoubtedByOwner } else { Sight::DoubtedByOthers })
        }
        (Unknown, Unknown) if draft.dead_letter && !before.dead_letter => Some(Sight::DeadLetter),
        (Unknown, Unknown) => Some(Sight::Asked),
        (Unknown, Completed | FailedReplayable | FailedRetryable) => settled(write, before),
        (_, State::Expired) => Some(Sight::Tombstone),
        (one, other) if one == other => Some(Sight::Rewritten),
        _ => None,
    }
}

fn is_second_phase(before: &Record, draft: &Draft) -> bool {
    draft.recovery_point.as_deref() == Some(RECEIPT) && before.recovery_point != draft.recovery_point
}

fn settled(write: &Write<'_>, before: &Record) -> Option<Sight> {
    use Happening::{SettledCompleted, SettledFailed, SettledNotExecuted};
    let entry = write.history?;
    Some(match (entry.happening, &entry.actor) {
        (SettledCompleted, Actor::Reconciler) => Sight::CompletedByPoll,
        (SettledCompleted, Actor::Webhook(_)) => Sight::CompletedByWebhook,
        (SettledCompleted, Actor::Operator(_)) => Sight::CompletedByOperator,
        (SettledFailed, Actor::Reconciler) => Sight::FailedByPoll,
        (SettledFailed, Actor::Webhook(_)) => Sight::FailedByWebhook,
        (SettledFailed, Actor::Operator(_)) => Sight::FailedByOperator,
        (SettledNotExecuted, Actor::Reconciler) => Sight::NotExecutedByPoll,
        (SettledNotExecuted, Actor::Webhook(_)) => Sight::NotExecutedByWebhook,
        (SettledNotExecuted, Actor::Operator(_)) => Sight::NotExecutedByOperator,
        (_, Actor::Owner) if before.state == State::Unknown => Sight::LateWord,
        _ => return None,
    })
}

/// How often each policy met each answer.
pub(crate) fn answers<'a>(told: impl Iterator<Item = (&'a Rule, &'a Told)>) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<(&'static str, Meaning), u64> = BTreeMap::new();
    for (rule, told) in told {
        let Some(answer) = &told.answer else { continue };
        let policy = rule.policy();
        let in_flight = match policy.in_flight {
            InFlight::Conflict => "conflict",
            InFlight::Accepted => "accepted",
            InFlight::Wait(_) => "wait",
        };
        let stale = match policy.stale {
            Stale::Unknown => "unknown",
            Stale::Resume => "resume",
            Stale::Rerun => "rerun",
        };
        let expired = if policy.expired == Expired::New { "new" } else { "refuse" };
        for of in [in_flight, stale, expired, rule.work.as_str()] {
            *counts.entry((of, answer.meaning)).or_default() += 1;
        }
    }
    counts.into_iter().map(|((of, meaning), count)| (format!("{of}: {meaning:?}"), count)).collect()
}
