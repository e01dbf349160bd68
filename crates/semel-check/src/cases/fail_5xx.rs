//! The charge succeeded, but then the confirmation mail failed: 500.
//!
//! A middleware that releases the key after every 5xx executes the retry and charges twice. The answer was an error, but the effect
//! may exist. (ACP and AdCP allow it all the same.)

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "fail.5xx",
    star: false,
    sent: "a request that fails with 5xx, twice",
    right: "one effect at most",
    severity: Some(Severity::DoubleExecution),
    fix: "Keep the key after a failure whose outcome is unknown, and say so in the answer to retries.",
    needs: &[Need::FailWith],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let failing = || {
        let draft = check.draft(&subject);
        match &check.plan.fail_with {
            Some(extra) => draft.with(extra),
            None => draft,
        }
    };
    let first = check.send_expecting_failure(failing()).await;
    if !matches!(&first, Ok(answer) if answer.is_server_error()) {
        return Err(Ended::Inconclusive(format!("--fail-with did not make the request fail ({})", told(&first))));
    }
    let again = check.send_expecting_failure(failing()).await;
    let mut judge = Judge::default();
    match check.count(&subject).await? {
        Some(effects @ 2..) if check.plan.profile.executes_after_5xx => {
            check.allow(&subject, effects);
            judge.fail(Severity::Note, format!("{effects} effects of a request that failed, which the profile allows"));
        }
        Some(effects @ 2..) => {
            judge.fail(Severity::DoubleExecution, format!("a request that failed was executed again: {effects} effects"));
        }
        Some(0) => judge.unseen("the failing request has no effect, so a second execution cannot be counted"),
        Some(_) => {}
        None => judge.unseen("effects are not counted: use --count, --count-cmd or --ledger"),
    }
    if let (Ok(first), Ok(again)) = (&first, &again)
        && !judge.found_something()
        && first.status == again.status
        && !first.body.is_empty()
        && again.body.is_empty()
    {
        judge.fail(Severity::ClientPain, "the retry gets the error without its body");
    }
    Ok(judge)
}
