//! The IETF draft writes keys in quotes, but most clients do not.
//!
//! An API may treat the quoted and the bare key as one key or as two. But a quoted key has to protect as well as a bare one, and a
//! request with two different keys must not be executed under one of them.

use crate::answer::{Reply, told};
use crate::check::Check;
use crate::request::Subject;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "key.form",
    star: false,
    sent: "the bare key, then the same key in quotes twice; two keys in one request",
    right: "the quoted key is refused, or protects as well; 400 for two keys",
    severity: Some(Severity::Note),
    fix: "Parse the key by one rule, and refuse a request with two keys.",
    needs: &[Need::HeaderKey],
    writes: |_| 4,
    counts: |_| 3,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    let subject = check.subject().await?;
    check.allow(&subject, 2);
    let quoted = format!("\"{}\"", subject.key);
    check.first(&subject).await?;
    let replies = [check.send(check.draft(&subject).key(quoted.clone())).await, check.send(check.draft(&subject).key(quoted)).await];
    judge_quoted(check, &mut judge, &subject, &replies).await?;
    let (one, two) = (check.subject().await?, check.subject().await?);
    let reply = check.send(check.draft(&one).keys([&one.key, &two.key])).await;
    match &reply {
        Ok(answer) if answer.is_refusal() => {}
        other => judge.fail(Severity::Note, format!("a request with two keys gets {} instead of 400", told(other))),
    }
    Ok(judge)
}

/// Whether two requests with the quoted key are treated alike, after one with the bare key.
async fn judge_quoted(
    check: &Check<'_>,
    judge: &mut Judge,
    subject: &Subject,
    replies: &[Reply; 2],
) -> Result<(), Ended> {
    let [one, two] = replies;
    match (one, two) {
        (Ok(one), Ok(two)) if one.is_refusal() && two.is_refusal() => judge.remark("keys in quotes are refused"),
        (Ok(one), Ok(two)) if one.is_success() && two.is_success() => match check.count(subject).await? {
            Some(3..) => judge.fail(Severity::Note, "a request with its key in quotes is executed every time"),
            Some(_) if !check.is_first_again(one, two) => {
                judge.fail(Severity::Note, "a retry with its key in quotes gets another answer");
            }
            Some(_) => {}
            None if check.identities().count(replies) > 1 => {
                judge.suspect("retries with a key in quotes get different answers: they may execute every time. Use --count to be sure");
            }
            None => judge.unseen("effects are not counted: use --count, --count-cmd or --ledger"),
        },
        (Err(_), _) | (_, Err(_)) => judge.unseen(format!("a key in quotes gets {}, then {}", told(one), told(two))),
        _ => judge.fail(Severity::Note, format!("a key in quotes gets {}, then {}", told(one), told(two))),
    }
    Ok(())
}
