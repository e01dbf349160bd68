//! The access token expired between the request and its retry.
//!
//! If keys are scoped by the credential, a retry with a refreshed token seems to come from a new caller, and is executed again. Tokens
//! live for minutes, retries go on for hours.

use crate::answer::told;
use crate::check::Check;
use crate::request::Caller;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "retry.token",
    star: false,
    sent: "the retry with a refreshed token of the same caller",
    right: "a replay",
    severity: Some(Severity::DoubleExecution),
    fix: "Scope keys by account, not by credential.",
    needs: &[Need::SameCaller],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let reply = check.send(check.draft(&subject).caller(Caller::Refreshed)).await;
    let mut judge = Judge::default();
    check.at_most_once(&mut judge, &subject, &[Ok(first.clone()), reply.clone()]).await?;
    if !matches!(&reply, Ok(again) if check.is_first_again(&first, again)) && !judge.found_something() {
        judge.fail(Severity::LostAnswer, format!("the retry with a refreshed token gets {}", told(&reply)));
    }
    Ok(judge)
}
