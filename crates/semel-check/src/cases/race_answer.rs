//! The duplicate lost the race. What is it told?
//!
//! A 500 alarms somebody at night. A 422 tells the client that its request was different, which it was not. A 409 without `Retry-After`
//! leaves it guessing.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case};

pub(super) const CASE: Case = Case {
    name: "race.answer",
    star: false,
    sent: "the same request many times at once",
    right: "duplicates get the answer, or 409 with Retry-After",
    severity: Severity::ClientPain,
    fix: "Answer duplicates of a running request with 409 and Retry-After, or let them wait.",
    needs: &[],
    writes: |plan| plan.concurrency,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let drafts = (0..check.plan.concurrency).map(|_| check.slowed(&subject)).collect();
    let raced = check.race(drafts).await?;
    let mut judge = Judge::default();
    if !raced.overlapped() {
        judge.unseen("no two requests were under way at the same time");
    }
    let profile = check.plan.profile;
    let mut told_of = std::collections::BTreeSet::new();
    for reply in &raced.replies {
        let problem = match reply {
            Ok(answer) if answer.is_success() => continue,
            Ok(answer) if answer.is_doubt(profile.doubt) => continue,
            Ok(answer) if profile.is_in_flight(answer.status) => {
                // 504 is no refusal that a wait could help with.
                if answer.header("retry-after").is_some() || answer.is_server_error() {
                    continue;
                }
                format!("{} has no Retry-After", answer.status)
            }
            other => format!("duplicates of a running request get {}", told(other)),
        };
        if told_of.insert(problem.clone()) {
            judge.fail(Severity::ClientPain, problem);
        }
    }
    Ok(judge)
}
