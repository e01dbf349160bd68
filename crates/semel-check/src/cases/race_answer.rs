//! What does a concurrent duplicate get?
//!
//! A 500 pages someone at night. A 422 tells the client that its request was different, which is wrong. A 409 without `Retry-After`
//! leaves the client guessing when to retry.

use crate::answer::{Reply, told};
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;
use super::shared::ATTEMPTS;

pub(super) const CASE: Case = Case {
    name: "race.answer",
    star: false,
    sent: "many concurrent duplicates of one request",
    right: "the answer, or 409 with Retry-After",
    severity: Some(Severity::ClientPain),
    fix: "Answer duplicates of a request in flight with 409 and Retry-After, or let them wait for the answer.",
    needs: &[],
    writes: |plan| ATTEMPTS * plan.concurrency,
    counts: |_| ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    for _ in 0..ATTEMPTS {
        let subject = check.subject().await?;
        let drafts = (0..check.plan.concurrency).map(|_| check.slowed(&subject)).collect();
        let raced = check.race(drafts).await?;
        raced.replies.iter().filter_map(|reply| problem(check, reply)).for_each(|problem| judge.fail(Severity::ClientPain, problem));
        if judge.found_something() || raced.overlapped() {
            return Ok(judge);
        }
    }
    judge.unseen("the requests never overlapped: the first answer came before a second request was complete");
    Ok(judge)
}

/// What is wrong with the answer to a duplicate.
fn problem(check: &Check<'_>, reply: &Reply) -> Option<String> {
    let profile = check.plan.profile;
    match reply {
        Ok(answer) if answer.is_success() || answer.is_doubt(profile.doubt) => None,
        // 504 is no refusal that a wait could help with.
        Ok(answer) if profile.is_in_flight(answer.status) && answer.is_server_error() => None,
        Ok(answer) if profile.is_in_flight(answer.status) => {
            answer.header("retry-after").is_none().then(|| format!("{} has no Retry-After", answer.status))
        }
        other => Some(format!("duplicates of a running request get {}", told(other))),
    }
}
