//! The client lost its connection while it was waiting.
//!
//! Many frameworks cancel the handler when the connection closes: after the effect, but before the answer is stored. The retry then
//! executes the request again, or finds the key locked forever.

use crate::check::Check;
use crate::crash::retries;
use crate::target::Partly;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::{ATTEMPTS, judge_end};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "hangup",
    star: false,
    sent: "a request whose client disconnects before the answer, then retries",
    right: "one effect, and an answer in the end",
    severity: Some(Severity::DoubleExecution),
    fix: "Let the work continue after the client disconnects, and store its answer.",
    needs: &[],
    writes: |plan| ATTEMPTS + retries(plan).count(),
    counts: |_| ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut wait = check.latency();
    for _ in 0..ATTEMPTS {
        let subject = check.subject().await?;
        let request = check.request(check.slowed(&subject))?;
        let begun = check.target.begin(&request, Partly::Whole).await;
        let begun = begun.map_err(|error| Ended::Inconclusive(error.to_string()))?;
        // In the middle of the work, as far as its duration is known; earlier if that was too late.
        wait /= 2;
        tokio::time::sleep(wait).await;
        if begun.is_answered() {
            continue;
        }
        drop(begun);
        let mut judge = Judge::default();
        let replies = check.until_answered(|| check.slowed(&subject)).await;
        check.at_most_once(&mut judge, &subject, &replies).await?;
        judge_end(check, &mut judge, &replies, "after the client disconnected");
        return Ok(judge);
    }
    Err(Ended::Inconclusive("the API answered before the client could close the connection: use --slow".into()))
}
