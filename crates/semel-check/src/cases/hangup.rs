//! The phone went into a tunnel.
//!
//! Many frameworks cancel the handler when the connection closes: after the effect, before the answer is stored. The retry
//! executes again, or finds the key locked for good.

use crate::check::Check;
use crate::target::Partly;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::judge_end;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "hangup",
    star: false,
    sent: "the client closes, and retries at once and later",
    right: "one effect, and an answer in the end",
    severity: Severity::DoubleExecution,
    fix: "Let the work go on when the client is gone, and store its answer.",
    needs: &[],
    writes: |_| 9,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let request = check.request(check.slowed(&subject))?;
    let begun = check.target.begin(&request, Partly::Whole).await;
    let begun = begun.map_err(|error| Ended::Inconclusive(error.to_string()))?;
    if check.plan.slow.is_none() {
        // In the middle of the work, as far as anybody can tell.
        tokio::time::sleep(check.latency() / 2).await;
    }
    drop(begun);
    let mut judge = Judge::default();
    let replies = check.until_answered(|| check.slowed(&subject)).await;
    check.at_most_once(&mut judge, &subject, &replies).await?;
    judge_end(check, &mut judge, &replies, "after the client hung up");
    Ok(judge)
}
