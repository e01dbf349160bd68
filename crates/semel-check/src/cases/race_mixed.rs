//! A client reuses a key by mistake, and both requests arrive at the same time.
//!
//! Even where a lock on the key decides the race, the request that waits for the lock may get the answer of the other one.

use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::ATTEMPTS;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.mixed",
    star: false,
    sent: "concurrent requests with two bodies under one key",
    right: "only one body is executed",
    severity: Some(Severity::DoubleExecution),
    fix: "Store a fingerprint of the request with the reservation, and compare it before anything else.",
    needs: &[Need::Vary],
    writes: |plan| ATTEMPTS * plan.concurrency,
    counts: |_| ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the changed body is not accepted under a key of its own: see `control.vary`".into()));
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
            judge.fail(Severity::WrongAnswer, "requests with different bodies both got success, with the same answer");
        }
        if judge.found_something() || raced.overlapped_between(|number| number % 2) {
            return Ok(judge);
        }
    }
    judge.unseen("the two bodies never overlapped: the first answer came before a request with the other body was complete");
    Ok(judge)
}
