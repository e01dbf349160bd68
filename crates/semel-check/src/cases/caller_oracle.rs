//! "This key was used with amount=1000, iban=DE…".
//!
//! A helpful error message that quotes the first request discloses it to any client that can name the key.

use crate::check::Check;
use crate::request::Caller;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "caller.oracle",
    star: false,
    sent: "another body under a used key",
    right: "the refusal contains nothing of the first request",
    severity: Some(Severity::Leak),
    fix: "Say that the key was used with another request, but do not quote that request.",
    needs: &[Need::Vary, Need::Mark],
    writes: |_| 3,
    counts: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the changed body is not accepted under a key of its own: see `control.vary`".into()));
    }
    let (subject, other) = (check.subject().await?, check.subject().await?);
    check.first(&subject).await?;
    let caller = if check.plan.other_caller.is_empty() { Caller::Own } else { Caller::Other };
    // The other subject's reference: what the refusal repeats of its own request is no leak.
    let mut judge = Judge::default();
    let mut refused = false;
    for caller in [Caller::Own, caller] {
        if let Ok(answer) = check.send(check.varied(&other)?.key(subject.key.clone()).caller(caller)).await
            && !answer.is_success()
        {
            refused = true;
            if answer.text().contains(&subject.reference) {
                judge.fail(Severity::Leak, "the refusal shows the first request's reference");
                return Ok(judge);
            }
        }
    }
    check.allow(&other, 2);
    if !refused {
        judge.unseen("another body was not refused: see `body.after`");
    }
    Ok(judge)
}
