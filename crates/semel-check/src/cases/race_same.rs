//! Check-then-act: every duplicate checks before any of them acts.
//!
//! This is the most common fault. A middleware looks the key up, does not find it, runs the handler, and stores the answer. Twenty
//! concurrent duplicates led to twenty executions.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "race.same",
    star: true,
    sent: "many concurrent duplicates of one request, several rounds",
    right: "one effect",
    severity: Some(Severity::DoubleExecution),
    fix: "Reserve the key with one atomic insert before the work begins. A lookup followed by an insert is a race.",
    needs: &[],
    writes: |plan| (plan.concurrency + 1) * plan.rounds,
    counts: |plan| plan.rounds,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    let mut overlapped = false;
    for _ in 0..check.plan.rounds {
        let subject = check.subject().await?;
        let drafts = (0..check.plan.concurrency).map(|_| check.draft(&subject)).collect();
        let raced = check.race(drafts).await?;
        overlapped |= raced.overlapped();
        check.at_most_once(&mut judge, &subject, &raced.replies).await?;
        let succeeded = raced.replies.iter().flatten().filter(|answer| answer.is_success()).count();
        if succeeded == 0 {
            let again = check.send(check.draft(&subject)).await;
            if !matches!(&again, Ok(answer) if answer.is_success() || answer.is_doubt(check.plan.profile.doubt)) {
                judge.fail(Severity::LostAnswer, format!("none of {} duplicates got the answer, and neither did a retry ({})", raced.replies.len(), told(&again)));
            }
        }
        if judge.found_something() {
            return Ok(judge);
        }
        // More rounds would show no more.
        if !check.can_prove_double_execution() {
            break;
        }
    }
    if !overlapped {
        judge.unseen("the requests never overlapped: the first answer came before a second request was complete");
    }
    Ok(judge)
}
