//! The connection broke in the middle of the upload.
//!
//! A middleware that locks the key as soon as the headers have arrived, and then waits for a body that never comes, keeps the key
//! locked until the lock times out.

use crate::answer::told;
use crate::check::Check;
use crate::target::Partly;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "hangup.body",
    star: false,
    sent: "half of the body, then the whole request",
    right: "one effect, and an answer",
    severity: Some(Severity::Stuck),
    fix: "Reserve the key once the request is complete, or release it if the upload is interrupted.",
    needs: &[Need::Body],
    writes: |_| 9,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let request = check.request(check.draft(&subject))?;
    let begun = check.target.begin(&request, Partly::Half).await;
    let begun = begun.map_err(|error| Ended::Inconclusive(error.to_string()))?;
    if begun.is_answered() {
        return Err(Ended::Inconclusive("the API answered before the body was complete".into()));
    }
    drop(begun);
    let mut judge = Judge::default();
    let replies = check.until_answered(|| check.draft(&subject)).await;
    check.at_most_once(&mut judge, &subject, &replies).await?;
    if !matches!(replies.last(), Some(Ok(answer)) if answer.is_success() || answer.is_doubt(check.plan.profile.doubt)) {
        let last = replies.last().map(told).unwrap_or_default();
        judge.fail(Severity::Stuck, format!("after an interrupted upload the key stays blocked: {last}"));
    }
    Ok(judge)
}
