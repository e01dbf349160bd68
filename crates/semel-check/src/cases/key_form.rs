//! The draft writes keys in quotes, and most clients do not.
//!
//! Either can be one key or two. What helps nobody is a request with two different keys, of which one is silently dropped.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "key.form",
    star: false,
    sent: "the key in quotes and bare; two keys in one request",
    right: "consistent; 400",
    severity: Severity::Note,
    fix: "Read the key by one rule, and refuse a request with two.",
    needs: &[Need::HeaderKey],
    writes: |_| 5,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    let subject = check.subject().await?;
    check.allow(&subject, 2);
    let quoted = format!("\"{}\"", subject.key);
    check.first(&subject).await?;
    let replies = [check.send(check.draft(&subject).key(quoted.clone())).await, check.send(check.draft(&subject).key(quoted)).await];
    match &replies[0] {
        Ok(answer) if answer.is_success() => {
            if check.count(&subject).await?.is_some_and(|effects| effects > 2) {
                judge.fail(Severity::Note, "a key in quotes is executed every time");
            }
        }
        Ok(answer) if answer.is_refusal() => judge.remark("keys in quotes are refused"),
        other => judge.fail(Severity::Note, format!("a key in quotes gets {}", told(other))),
    }
    let (one, two) = (check.subject().await?, check.subject().await?);
    let reply = check.send(check.draft(&one).keys([&one.key, &two.key])).await;
    match &reply {
        Ok(answer) if answer.is_refusal() => {}
        other => judge.fail(Severity::Note, format!("a request with two keys gets {} instead of 400", told(other))),
    }
    Ok(judge)
}
