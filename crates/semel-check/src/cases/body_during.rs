//! The same mistake, a second earlier.
//!
//! Where the fingerprint is stored with the answer, a key that is still running has none: the other body waits, and then takes the
//! first one's answer.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::Duration;
use super::shared::{ATTEMPTS, another_body};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "body.during",
    star: false,
    sent: "another body while the first request runs",
    right: "a refusal, and no effect",
    severity: Severity::DoubleExecution,
    fix: "Compare the fingerprint with the reservation, not only with the stored answer.",
    needs: &[Need::Vary],
    writes: |_| 2 * ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the varied body is not accepted by itself: see `control.vary`".into()));
    }
    if check.plan.slow.is_none() && check.latency() < Duration::from_millis(50) {
        return Err(Ended::Inconclusive("the API answers too fast to come in between: give --slow".into()));
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
        another_body(check, &mut judge, &subject, &first, &reply).await?;
        // The other body wakes a server that may answer both before we know that the write succeeded: its beginning counts.
        let overlapped = matches!(&reply, Ok(answer) if answer.sending.max(first.sending) < answer.came.min(first.came));
        if judge.found_something() || overlapped {
            return Ok(judge);
        }
    }
    judge.unseen("the first request had always ended when the other one came");
    Ok(judge)
}
