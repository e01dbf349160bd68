//! Another body under the same key, while the first request is still running.
//!
//! If the fingerprint is stored only with the answer, there is nothing to compare with while the request is running: the second request
//! waits, and then gets the first one's answer.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::Duration;
use super::shared::{ATTEMPTS, another_body};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "body.during",
    star: false,
    sent: "another body while the first request is running",
    right: "a refusal, and no effect",
    severity: Some(Severity::DoubleExecution),
    fix: "Compare the fingerprint with the reservation, not only with the stored answer.",
    needs: &[Need::Vary],
    writes: |_| 2 * ATTEMPTS,
    counts: |_| ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the changed body is not accepted under a key of its own: see `control.vary`".into()));
    }
    if check.plan.slow.is_none() && check.latency() < Duration::from_millis(50) {
        return Err(Ended::Inconclusive("the API answers too fast for another request to arrive in between: use --slow".into()));
    }
    let mut judge = Judge::default();
    for _ in 0..ATTEMPTS {
        let subject = check.subject().await?;
        let varied = match (&check.plan.slow, check.varied(&subject)?) {
            (Some(slow), varied) => varied.with(slow),
            (None, varied) => varied,
        };
        let later = async {
            tokio::time::sleep(Duration::from_millis(25)).await;
            check.send(varied).await
        };
        let (one, other) = tokio::join!(check.send(check.slowed(&subject)), later);
        // Whichever came first: the network may have turned them around.
        let (first, reply) = match (one, other) {
            (Ok(first), reply) if first.is_success() => (first, reply),
            (reply, Ok(first)) if first.is_success() => (first, reply),
            (one, other) => {
                let told = format!("neither request succeeded ({}, {})", told(&one), told(&other));
                return Err(Ended::Inconclusive(told));
            }
        };
        another_body(check, &mut judge, &subject, &first, &reply, "another body").await?;
        // The other body wakes a server that may answer both before we know that the write succeeded: its beginning counts.
        let overlapped = matches!(&reply, Ok(answer) if answer.sending.max(first.sending) < answer.came.min(first.came));
        if judge.found_something() || overlapped {
            return Ok(judge);
        }
    }
    judge.unseen("the requests never overlapped: the first request had ended before the other one arrived");
    Ok(judge)
}
