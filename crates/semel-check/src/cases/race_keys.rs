//! Two customers pay at the same moment.
//!
//! A lock that is too wide only costs time. State that two requests share costs more: one of them gets the other's answer.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.keys",
    star: false,
    sent: "two keys at once",
    right: "two effects",
    severity: Severity::WrongAnswer,
    fix: "Look answers up by the whole key, and keep no state of a request in anything shared.",
    needs: &[Need::Count],
    writes: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let (one, two) = (check.subject().await?, check.subject().await?);
    let raced = check.race(vec![check.draft(&one), check.draft(&two)]).await?;
    let mut judge = Judge::default();
    if !raced.overlapped() {
        judge.unseen("the two requests were not under way at the same time");
    }
    if let (Ok(first), Ok(second)) = (&raced.replies[0], &raced.replies[1])
        && let identities = check.identities()
        && let (Some(of_one), Some(of_two)) = (identities.of(first), identities.of(second))
        && of_one == of_two
    {
        judge.fail(Severity::WrongAnswer, "two keys at the same time got one and the same answer");
    }
    let succeeded = raced.replies.iter().flatten().filter(|answer| answer.is_success()).count() as u64;
    let counts = if check.plan.mark.is_some() {
        vec![check.count(&one).await?, check.count(&two).await?]
    } else {
        vec![check.count(&one).await?]
    };
    let effects: u64 = counts.iter().flatten().sum();
    if effects < succeeded || (succeeded == 2 && counts.contains(&Some(0))) {
        judge.fail(Severity::WrongAnswer, format!("{succeeded} keys were told that they succeeded, and not each had its effect: {effects} in all"));
    } else if effects > 2 {
        judge.fail(Severity::DoubleExecution, format!("two keys had {effects} effects"));
    } else if succeeded < 2 {
        judge.unseen("not both requests succeeded");
    }
    Ok(judge)
}
