//! The idempotency middleware runs before authentication.
//!
//! A replay then needs no credentials: the key is enough.

use crate::answer::told;
use crate::check::Check;
use crate::request::Caller;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "caller.none",
    star: false,
    sent: "the same request without credentials",
    right: "401 or 403",
    severity: Some(Severity::Leak),
    fix: "Authenticate before you look a key up.",
    needs: &[Need::Credentials],
    writes: |_| 3,
    counts: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let reply = check.send(check.draft(&subject).caller(Caller::Anonymous)).await;
    let answer = match &reply {
        Ok(answer) if [401, 403].contains(&answer.status) => return Ok(Judge::default()),
        Ok(answer) if answer.is_success() => answer,
        Ok(answer) if answer.is_refusal() => {
            let mut judge = Judge::default();
            judge.remark(format!("refused with {} instead of 401 or 403", answer.status));
            return Ok(judge);
        }
        other => return Err(Ended::Inconclusive(format!("a request without credentials gets {}", told(other)))),
    };
    // An API that serves everybody has nothing to leak.
    let control = check.subject().await?;
    let open = check.send(check.draft(&control).caller(Caller::Anonymous)).await;
    if matches!(&open, Ok(answer) if answer.is_success()) {
        check.allow(&subject, 2);
        return Err(Ended::NotRun("the API serves callers without credentials".into()));
    }
    let mut judge = Judge::default();
    if check.is_first_again(&first, answer) {
        judge.fail(Severity::Leak, "a request without credentials got the first caller's answer: the key alone was enough");
    } else {
        judge.fail(Severity::Leak, format!("without credentials a request with a known key gets {}, while one with an unknown key is refused", answer.status));
    }
    Ok(judge)
}
