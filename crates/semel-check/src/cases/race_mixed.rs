//! A client reuses a key by mistake, and both requests arrive together.
//!
//! Even where the race of equal requests is won by a lock on the key, the loser may wait and then take the winner's answer for its
//! own.

use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.mixed",
    star: false,
    sent: "two bodies under one key at once",
    right: "one of them executes",
    severity: Severity::DoubleExecution,
    fix: "Store a fingerprint of the request with the reservation, and compare it before anything else.",
    needs: &[Need::Vary, Need::Count],
    writes: |plan| plan.concurrency,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the varied body is not accepted by itself: see `control.vary`".into()));
    }
    let subject = check.subject().await?;
    let mut drafts = Vec::new();
    for number in 0..check.plan.concurrency {
        drafts.push(if number % 2 == 0 { check.draft(&subject) } else { check.varied(&subject)? });
    }
    let raced = check.race(drafts).await?;
    let mut judge = Judge::default();
    if !raced.overlapped() {
        judge.unseen("no two requests were under way at the same time");
    }
    check.at_most_once(&mut judge, &subject, &raced.replies).await?;
    let answers = |odd: usize| {
        raced.replies.iter().enumerate().filter(move |(number, _)| number % 2 == odd).filter_map(|(_, reply)| reply.as_ref().ok()).find(|answer| answer.is_success())
    };
    if let (Some(one), Some(other)) = (answers(0), answers(1))
        && !judge.found_something()
        && check.is_first_again(one, other)
    {
        judge.fail(Severity::WrongAnswer, "both bodies were told that they succeeded, with one and the same answer");
    }
    Ok(judge)
}
