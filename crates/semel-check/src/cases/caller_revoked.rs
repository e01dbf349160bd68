//! The account was closed at noon, and its answers can still be read at two.
//!
//! A replay is an answer like any other. A cache in front of the authorisation does not know that the credential has been revoked.

use crate::answer::told;
use crate::check::Check;
use crate::crash::retries;
use crate::shell;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::{Duration, Instant};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "caller.revoked",
    star: false,
    sent: "the same request after the credential was revoked",
    right: "a refusal without the stored answer",
    severity: Some(Severity::Leak),
    fix: "Check that the credential is still valid before every replay.",
    needs: &[Need::Revoke],
    writes: |plan| 1 + 2 * retries(plan).count(),
    counts: |plan| 1 + retries(plan).count(),
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let revoke = check.plan.revoke.as_deref().unwrap_or_default();
    shell::output("--revoke", revoke, &subject.reference, Duration::from_secs(60)).await.map_err(Ended::Inconclusive)?;
    // Caches of credentials are common, and last for seconds or minutes.
    let began = Instant::now();
    let mut is_refused = false;
    for at in retries(check.plan) {
        tokio::time::sleep_until((began + at).into()).await;
        let control = check.subject().await?;
        match check.send(check.draft(&control)).await {
            Ok(answer) if answer.is_success() => continue,
            Ok(answer) if answer.is_refusal() => is_refused = true,
            other => return Err(Ended::Inconclusive(format!("after --revoke a new request gets {}", told(&other)))),
        }
        let reply = check.send(check.draft(&subject)).await;
        if !matches!(&reply, Ok(answer) if check.is_first_again(&first, answer)) {
            return Ok(Judge::default());
        }
    }
    let waited = check.plan.patience.as_secs();
    if !is_refused {
        return Err(Ended::Inconclusive(format!("the credential still works {waited} s after --revoke")));
    }
    let mut judge = Judge::default();
    judge.fail(Severity::Leak, format!("a revoked credential still gets the first answer after {waited} s"));
    Ok(judge)
}
