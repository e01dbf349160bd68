//! The account was closed at noon, and its answers are still read at two.
//!
//! A replay is an answer like any other. A cache in front of the authorisation does not know that the credential is gone.

use crate::check::Check;
use crate::shell;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::Duration;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "caller.revoked",
    star: false,
    sent: "the same request after the credential was revoked",
    right: "no body",
    severity: Severity::Leak,
    fix: "Ask whether the credential is still good before every replay.",
    needs: &[Need::Revoke],
    writes: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let revoke = check.plan.revoke.as_deref().unwrap_or_default();
    shell::output(revoke, &subject.reference, Duration::from_secs(60)).await.map_err(Ended::Inconclusive)?;
    let control = check.subject().await?;
    let fresh = check.send(check.draft(&control)).await;
    if matches!(&fresh, Ok(answer) if answer.is_success()) {
        return Err(Ended::Inconclusive("after --revoke the credential still works".into()));
    }
    let reply = check.send(check.draft(&subject)).await;
    let mut judge = Judge::default();
    if matches!(&reply, Ok(answer) if check.is_first_again(&first, answer)) {
        judge.fail(Severity::Leak, "a revoked credential still gets the first answer");
    }
    Ok(judge)
}
