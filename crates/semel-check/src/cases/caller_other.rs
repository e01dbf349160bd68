//! Clients choose keys, and two clients can choose the same one.
//!
//! If keys are not scoped by account, a caller who guesses or learns a key gets another account's answer: names, amounts, card digits.

use crate::answer::told;
use crate::check::Check;
use crate::request::Caller;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "caller.other",
    star: false,
    sent: "another caller with the same key and body",
    right: "an effect of its own, or a refusal",
    severity: Some(Severity::Leak),
    fix: "Make the account part of every lookup of a key.",
    needs: &[Need::OtherCaller],
    writes: |_| 2,
    counts: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    check.allow(&subject, 2);
    let first = check.first(&subject).await?;
    let before = check.count(&subject).await?;
    let reply = check.send(check.draft(&subject).caller(Caller::Other)).await;
    let after = check.count(&subject).await?;
    let mut judge = Judge::default();
    match &reply {
        Ok(answer) if answer.is_success() && after.is_none() && !check.answers_name_things() => {
            judge.unseen("answers of different callers cannot be distinguished: use --count or --identity");
        }
        Ok(answer) if answer.is_success() && check.is_first_again(&first, answer) && (after.is_none() || after == before) => {
            judge.fail(Severity::Leak, "another caller got the first caller's answer");
        }
        Ok(answer) if answer.is_success() && after.is_some() && after == before && check.plan.mark.is_none() => {
            judge.fail(Severity::WrongAnswer, "another caller's request was answered with success, but nothing was executed");
        }
        Ok(answer) if answer.is_success() || answer.is_refusal() => {}
        other => judge.unseen(format!("another caller gets {}", told(other))),
    }
    Ok(judge)
}
