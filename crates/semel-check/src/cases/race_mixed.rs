//! A client reuses a key by mistake, and both requests arrive together.
//!
//! Even where the race of equal requests is won by a lock on the key, the loser may wait and then take the winner's answer for its
//! own.

use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::ATTEMPTS;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.mixed",
    star: false,
    sent: "two bodies under one key at once",
    right: "one of them executes",
    severity: Severity::DoubleExecution,
    fix: "Store a fingerprint of the request with the reservation, and compare it before anything else.",
    needs: &[Need::Vary],
    writes: |plan| ATTEMPTS * plan.concurrency,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the varied body is not accepted by itself: see `control.vary`".into()));
    }
    let mut judge = Judge::default();
    for _ in 0..ATTEMPTS {
        let subject = check.subject().await?;
        let mut drafts = Vec::new();
        for number in 0..check.plan.concurrency {
            drafts.push(if number % 2 == 0 { check.draft(&subject) } else { check.varied(&subject)? });
        }
        let raced = check.race(drafts).await?;
        check.at_most_once(&mut judge, &subject, &raced.replies).await?;
        let answer = |odd: usize| {
            let replies = raced.replies.iter().skip(odd).step_by(2).flatten();
            replies.into_iter().find(|answer| answer.is_success())
        };
        if let (Some(one), Some(other)) = (answer(0), answer(1))
            && !judge.found_something()
            && check.is_first_again(one, other)
        {
            judge.fail(Severity::WrongAnswer, "both bodies were told that they succeeded, with one and the same answer");
        }
        if judge.found_something() || raced.overlapped_between(|number| number % 2) {
            return Ok(judge);
        }
    }
    judge.unseen("never were two bodies complete at the API before the first answer came");
    Ok(judge)
}
