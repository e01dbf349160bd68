//! What must hold of every write, whatever the state machine says of it: a bug there would be on both sides of `steps.rs`.
//!
//! The record before and after are held against each other, against who took the attempt, and against the provider's ledger at that moment.

use crate::book::{Known, Pages};
use crate::rules::{Rule, Work, is_past_payment};
use crate::store::Write;
use semel::{
    Actor, Body, Draft, Expired, Happening, HistoryEntry, Now, Origin, Policy, Record, Stale, State,
    Timestamp, When,
};
use std::time::Duration;

/// Everything that a write is judged by.
pub(crate) struct Case<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) pages: &'a Pages,
    /// Who writes.
    pub(crate) instance: usize,
    /// Who took the attempt that the record had before.
    pub(crate) owner: Option<usize>,
    pub(crate) now: Now,
}

type Verdict = Result<(), String>;

impl Case<'_> {
    /// What is wrong with a write.
    pub(crate) fn check(&self, write: &Write<'_>) -> Verdict {
        match (write.before, write.draft) {
            (None, Some(draft)) => self.reserved(draft),
            (Some(before), None) => self.removed(before),
            (Some(before), Some(draft)) => {
                same(before, draft)?;
                self.swapped(before, draft, write.history)
            }
            (None, None) => Ok(()),
        }
    }

    fn reserved(&self, draft: &Draft) -> Verdict {
        let is_first =
            draft.state == State::InProgress && draft.attempt == 1 && draft.origin == Origin::First;
        let is_empty = draft.response.is_none() && draft.recovery_point.is_none() && draft.resource.is_none();
        require(is_first && is_empty, "a reservation is a first attempt, with nothing done")?;
        self.leased(draft)
    }

    fn removed(&self, before: &Record) -> Verdict {
        match before.state {
            State::InProgress => {
                self.by_owner()?;
                let is_bare = before.origin == Origin::First && before.recovery_point.is_none();
                require(is_bare, "what took over, or got to a recovery point, is never as if unseen")?;
                self.did_nothing(before)
            }
            State::Unknown => Err("doubt is never removed".into()),
            _ => {
                let new = self.rule.policy().expired == Expired::New;
                // Whoever wrote the tombstone was judged then, and may be ahead of this process.
                if new && before.state == State::Expired {
                    return Ok(());
                }
                let end = if new { before.times.expires } else { before.times.purge };
                require(end.is_some_and(|end| has_come(end, self.now)), "it was removed before its time")
            }
        }
    }

    fn swapped(&self, before: &Record, draft: &Draft, history: Option<&HistoryEntry>) -> Verdict {
        use State::{
            Completed, Expired as Tombstone, FailedReplayable, FailedRetryable, InProgress, Unknown,
        };
        if draft.attempt != before.attempt {
            return self.taken(before, draft);
        }
        let actor = history.map(|entry| &entry.actor);
        let is_owners = actor.is_none_or(|actor| *actor == Actor::Owner);
        if history.is_some_and(|entry| entry.happening == Happening::Remarked) {
            return require(unchanged(before, draft), "a remark changes nothing");
        }
        match (before.state, draft.state) {
            (InProgress, InProgress) if matches!(draft.times.lease, When::In(_)) => {
                self.by_owner()?;
                self.leased(draft)?;
                advanced(before, draft)
            }
            (Completed | FailedReplayable | FailedRetryable, Tombstone) => {
                let is_over = before.times.expires.is_some_and(|end| has_come(end, self.now));
                require(is_over, "a tombstone comes after the window alone")
            }
            (one, other) if one == other && one != Unknown => {
                require(history.is_none() && unchanged(before, draft), "what has ended stays as it is")
            }
            (Unknown, Unknown) => self.asked(before, draft, history),
            (InProgress, Unknown) if is_owners => self.by_owner(),
            (InProgress, Unknown) => {
                let retries = self.rule.policy().stale != Stale::Unknown;
                require(!retries, "what is left to retries is not doubted by others")?;
                require(has_come(before.times.lease, self.now), "it was doubted while its lease ran")
            }
            (InProgress | Unknown, Completed | FailedReplayable | FailedRetryable) => {
                if is_owners {
                    self.by_owner()?;
                    require(draft.owner == before.owner, "an owner stays the owner")?;
                    let backs_out = draft.state == FailedRetryable;
                    let may = before.state == InProgress && before.origin != Origin::Doubt;
                    require(
                        !backs_out || may,
                        "who took over doubt, or is in doubt, cannot say that nothing happened",
                    )?;
                } else {
                    self.settled(before, draft, actor)?;
                }
                self.is_kept(draft)?;
                self.agrees(before, draft.state)
            }
            (one, other) => Err(format!("{} never becomes {}", one.as_str(), other.as_str())),
        }
    }

    /// A question is claimed, or there have been enough of them.
    fn asked(&self, before: &Record, draft: &Draft, history: Option<&HistoryEntry>) -> Verdict {
        let is_told = history.is_none_or(|entry| entry.happening == Happening::DeadLettered);
        require(is_told && draft.owner == before.owner, "questions about doubt leave it as it is")?;
        let most = self.rule.polls.map_or(0, |(attempts, _)| attempts);
        require(draft.reconcile_attempts <= most, "it is asked about more often than the rules say")?;
        let is_new = draft.dead_letter && !before.dead_letter;
        require(
            !is_new || draft.reconcile_attempts == most,
            "it is a dead letter before its questions are used up",
        )
    }

    /// Another attempt goes on.
    fn taken(&self, before: &Record, draft: &Draft) -> Verdict {
        require(draft.attempt == before.attempt + 1, "attempts are counted one by one")?;
        require(
            draft.state == State::InProgress && draft.owner != before.owner,
            "who takes it owns it, and is at work",
        )?;
        self.leased(draft)?;
        let origin = match before.state {
            State::FailedRetryable => {
                let is_over = before.times.expires.is_some_and(|end| has_come(end, self.late()));
                require(!is_over, "it was taken again after its window")?;
                Origin::Retry
            }
            State::InProgress => {
                require(
                    self.rule.takes_over(),
                    "a lease that ran out was taken over, and the policy is doubt",
                )?;
                require(has_come(before.times.lease, self.now), "it was taken over while its lease ran")?;
                Origin::Doubt
            }
            other => return Err(format!("{} was taken", other.as_str())),
        };
        require(draft.origin == origin, "an attempt knows what it took over")?;
        require(
            draft.recovery_point == before.recovery_point,
            "who takes over goes on after the recovery point",
        )
    }

    /// Evidence alone ends doubt, and fences the owner.
    fn settled(&self, before: &Record, draft: &Draft, actor: Option<&Actor>) -> Verdict {
        require(before.state == State::Unknown, "evidence settles doubt alone")?;
        require(draft.owner != before.owner, "who settles it fences the owner")?;
        let absent = draft.state == State::FailedRetryable && !matches!(actor, Some(Actor::Operator(_)));
        require(!absent || has_come(before.times.lease, self.now), "absence counted while the lease ran")?;
        let proved = self.pages.known(before.operation_id) == Some(Known::Declined)
            || self.pages.is_proved(before.operation_id, before.attempt);
        require(draft.state == State::Completed || proved, "nobody has said so of this attempt")
    }

    /// What is recorded is true at that moment.
    fn agrees(&self, before: &Record, state: State) -> Verdict {
        let had = self.pages.known(before.operation_id) == Some(Known::Charged);
        match state {
            State::Completed => require(had, "it is completed, and the ledger has no effect of it"),
            State::FailedRetryable => self.did_nothing(before),
            _ => require(!had, "it failed, and the ledger has an effect of it"),
        }
    }

    /// The attempt did not begin, or somebody who can know has said that it did nothing. Behind a recovery point it did nothing more.
    fn did_nothing(&self, before: &Record) -> Verdict {
        let (id, attempt) = (before.operation_id, before.attempt);
        if is_past_payment(before.recovery_point.as_deref()) {
            let has_receipt = self.pages.receipts.contains_key(&id);
            return require(!has_receipt, "nothing more happened, it says, and the ledger has a receipt");
        }
        require(
            self.pages.known(id) != Some(Known::Charged),
            "nothing happened, it says, and the ledger has an effect",
        )?;
        let began = self.pages.order(id, attempt).is_some() && self.rule.work != Work::Transaction;
        require(!began || self.pages.is_proved(id, attempt), "nobody has proved that it did nothing")
    }

    fn by_owner(&self) -> Verdict {
        if self.owner == Some(self.instance) {
            return Ok(());
        }
        Err(format!(
            "process {} writes as the owner, and process {:?} took this attempt",
            self.instance, self.owner
        ))
    }

    fn leased(&self, draft: &Draft) -> Verdict {
        let is_so = self.rule.policies().iter().any(|policy| draft.times.lease == When::In(policy.lease));
        require(is_so, "a lease is as long as the policy says")?;
        require(
            draft.times.expires.is_none() && draft.times.purge.is_none(),
            "no window runs while somebody works",
        )
    }

    /// How long a final state is kept.
    fn is_kept(&self, draft: &Draft) -> Verdict {
        let is_so = |policy: &&Policy| {
            let (retention, tombstone) = (policy.retention, policy.tombstone);
            let purge = (tombstone != Duration::MAX).then(|| When::In(retention.saturating_add(tombstone)));
            draft.times.expires == Some(When::In(retention)) && draft.times.purge == purge
        };
        require(self.rule.policies().iter().any(is_so), "a window is as long as the policy says")?;
        require(!draft.dead_letter && draft.times.reconcile.is_none(), "nobody is asked about what has ended")
    }

    /// What was decided with the latest time in mind was decided up to a minute earlier.
    fn late(&self) -> Now {
        let earlier = |at: Timestamp| Timestamp::from_millis(at.as_millis() - 60_000);
        Now { earliest: earlier(self.now.earliest), latest: earlier(self.now.latest), ..self.now }
    }
}

/// What never changes of an operation.
fn same(before: &Record, draft: &Draft) -> Verdict {
    let is_same = (&before.key, before.operation_id, before.fingerprint, before.recipe)
        == (&draft.key, draft.operation_id, draft.fingerprint, draft.recipe);
    require(is_same && draft.times.created == When::At(before.times.created), "it is another operation")?;
    require(draft.version == before.version + 1, "versions go up one by one")
}

/// A recovery point is committed once, and stays.
fn advanced(before: &Record, draft: &Draft) -> Verdict {
    let is_behind = before.recovery_point.is_some() && draft.recovery_point.is_none();
    require(!is_behind, "a recovery point is gone")?;
    let is_same = before.recovery_point == draft.recovery_point;
    require(!is_same || before.checkpoint == draft.checkpoint, "a recovery point was committed again")
}

/// Nothing has changed but the version, and how answer and checkpoint are encrypted.
fn unchanged(before: &Record, draft: &Draft) -> bool {
    let is_same_answer = match (&before.response, &draft.response) {
        (Some(one), Some(other)) => {
            one.status == other.status
                && one.body.is_kept() == other.body.is_kept()
                && (one == other || matches!(other.body, Body::Sealed(_)))
        }
        (one, other) => one.is_none() && other.is_none(),
    };
    let is_same_checkpoint = before.checkpoint.is_some() == draft.checkpoint.is_some();
    let same = (before.state, before.attempt, before.owner, before.origin, &before.recovery_point);
    let others = (&before.resource, &before.last_error, before.reconcile_attempts, before.dead_letter);
    is_same_answer
        && is_same_checkpoint
        && same == (draft.state, draft.attempt, draft.owner, draft.origin, &draft.recovery_point)
        && others == (&draft.resource, &draft.last_error, draft.reconcile_attempts, draft.dead_letter)
        && before.times.map(When::At) == draft.times
}

fn has_come(moment: Timestamp, now: Now) -> bool {
    moment.has_come(now.earliest)
}

fn require(holds: bool, otherwise: &str) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

#[cfg(test)]
mod tests;
