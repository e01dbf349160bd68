//! Check, then act: everybody checks before anybody acts.
//!
//! The most common fault of all. A middleware looks whether it knows the key, does not, lets the handler run, and stores the answer.
//! Twenty duplicates at once became twenty executions.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "race.same",
    star: true,
    sent: "the same request many times at once, several rounds",
    right: "one effect",
    severity: Severity::DoubleExecution,
    fix: "Reserve the key by one atomic insert before the work begins. A look-up and a later insert are a race.",
    needs: &[],
    writes: |plan| (plan.concurrency + 1) * plan.rounds,
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
                judge.fail(Severity::LostAnswer, format!("none of {} duplicates got an answer, and neither did a retry ({})", raced.replies.len(), told(&again)));
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
        judge.unseen("no two requests were under way at the same time");
    }
    Ok(judge)
}
