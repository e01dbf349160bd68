//! Judgements that several cases share.

use crate::answer::{Answer, Reply, told};
use crate::check::Check;
use crate::crash::retries;
use crate::request::{Draft, Subject};
use crate::verdict::{Ended, Judge, Severity};
use std::time::Instant;

/// How often to try until the moment that a case needs is seen: on a busy machine the first request of a race may be answered before
/// the second has left.
pub(super) const ATTEMPTS: usize = 3;

/// Why the moment of a crash was not seen.
pub(super) fn unseen<'a>(check: &Check<'_>, why: &'a str) -> &'a str {
    match (&check.effects, &check.plan.mark) {
        (None, _) => "effects are not counted: use --count, --count-cmd or --ledger, and --mark",
        (Some(_), None) => "effects are not counted by reference: use --mark",
        _ => why,
    }
}

/// The answer to the same request sent again, if it is a replay. What is no replay cannot be compared.
pub(super) async fn replayed(check: &Check<'_>, subject: &Subject, first: &Answer) -> Result<Answer, Ended> {
    check.can_tell_replays()?;
    match check.send(check.draft(subject)).await {
        Ok(again) if check.is_first_again(first, &again) => Ok(again),
        other => {
            Err(Ended::Inconclusive(format!("the retry is not a replay ({}): see `retry`", told(&other))))
        }
    }
}

/// A double execution, where effects are counted.
pub(super) async fn one_effect_if_counted(
    check: &Check<'_>,
    judge: &mut Judge,
    subject: &Subject,
) -> Result<(), Ended> {
    if let Some(effects @ 2..) = check.count(subject).await? {
        judge.fail(Severity::DoubleExecution, format!("one key had {effects} effects"));
    }
    Ok(())
}

/// What is right for another body under a used key: a refusal, and no effect. `what` names the body in a sentence.
pub(super) async fn another_body(
    check: &Check<'_>,
    judge: &mut Judge,
    subject: &Subject,
    first: &Answer,
    reply: &Reply,
    what: &str,
) -> Result<(), Ended> {
    let effects = check.count(subject).await?;
    if let Some(effects @ 2..) = effects {
        judge.fail(
            Severity::DoubleExecution,
            format!("{what} was executed under the same key: {effects} effects"),
        );
        return Ok(());
    }
    let profile = check.plan.profile;
    match reply {
        Ok(answer) if check.is_first_again(first, answer) => {
            judge.fail(Severity::WrongAnswer, format!("{what} got the first request's answer"));
        }
        Ok(answer) if answer.is_success() && effects.is_none() && check.name_two_things(first, answer) => {
            judge.fail(
                Severity::DoubleExecution,
                format!("{what} was executed under the same key: its answer names another result"),
            );
        }
        Ok(answer) if answer.is_success() && effects.is_none() => {
            judge.suspect(format!(
                "{what} got an answer of its own: it may have been executed. Use --count to be sure"
            ));
        }
        Ok(answer) if answer.is_success() => {
            judge.fail(
                Severity::WrongAnswer,
                format!("the answer to {what} says success, but nothing was executed"),
            );
        }
        Ok(answer) if profile.is_reused(answer.status) || profile.is_in_flight(answer.status) => {}
        Ok(answer) => judge.fail(Severity::ClientPain, format!("{what} is refused with {}", answer.status)),
        Err(_) => judge.unseen(format!("{what} gets {}", told(reply))),
    }
    Ok(())
}

/// What is right for a second key: its own effect.
pub(super) async fn second_key(
    check: &Check<'_>,
    judge: &mut Judge,
    first: &Answer,
    subject: &Subject,
    key: &str,
    what: &str,
) -> Result<(), Ended> {
    let reply = check.send(check.draft(subject).key(key)).await;
    let effects = check.count(subject).await?;
    match &reply {
        Ok(answer) if check.answers_differ() && check.is_first_again(first, answer) => {
            judge.fail(Severity::WrongAnswer, format!("{what} get the same answer"));
        }
        Ok(answer) if answer.is_success() && effects == Some(0) => {
            judge.fail(
                Severity::WrongAnswer,
                format!("{what} are treated as one key: the second request had no effect"),
            );
        }
        Ok(answer) if answer.is_success() && effects.is_none() && !check.name_two_things(first, answer) => {
            judge.unseen("effects are not counted: use --count, --count-cmd or --ledger");
        }
        Ok(answer) if answer.is_success() => {}
        Ok(answer) if answer.is_refusal() => judge.fail(
            Severity::WrongAnswer,
            format!("{what} are treated as one key: the second is refused with {}", answer.status),
        ),
        other => judge.unseen(format!("the second key gets {}", told(other))),
    }
    Ok(())
}

/// A lost answer, unless the last reply is an answer or says that the outcome is unknown.
pub(super) fn judge_end(check: &Check<'_>, judge: &mut Judge, replies: &[Reply], when: &str) {
    let is_end = |answer: &Answer| answer.is_success() || answer.is_doubt(check.plan.profile.doubt);
    if !matches!(replies.last(), Some(Ok(answer)) if is_end(answer)) {
        let last = replies.last().map(told).unwrap_or_default();
        judge.fail(Severity::LostAnswer, format!("{when} no retry gets the answer: {last}"));
    }
}

impl<'p> Check<'p> {
    /// Sends until there is an answer or doubt, by a schedule that outlasts locks of up to two minutes, within the plan's patience.
    pub(super) async fn until_answered(&self, draft: impl Fn() -> Draft<'p>) -> Vec<Reply> {
        let began = Instant::now();
        let mut replies = Vec::new();
        for at in retries(self.plan) {
            tokio::time::sleep_until((began + at).into()).await;
            let reply = self.send(draft()).await;
            let is_end = matches!(&reply, Ok(answer) if answer.is_success() || answer.is_doubt(self.plan.profile.doubt));
            replies.push(reply);
            if is_end {
                break;
            }
        }
        replies
    }
}
