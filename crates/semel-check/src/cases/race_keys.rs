//! Two customers pay at the same moment.
//!
//! A lock that is too coarse only costs time. State that two requests share is worse: one of them gets the answer of the other.

use crate::check::Check;
use crate::request::Subject;
use crate::target::Raced;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::Case;
use super::shared::ATTEMPTS;

pub(super) const CASE: Case = Case {
    name: "race.keys",
    star: false,
    sent: "two concurrent requests with different keys",
    right: "two effects",
    severity: Some(Severity::WrongAnswer),
    fix: "Look answers up by the whole key, and keep no request state in shared variables.",
    needs: &[],
    writes: |_| 2 * ATTEMPTS,
    counts: |_| 2 * ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    for _ in 0..ATTEMPTS {
        let (one, two) = (check.subject().await?, check.subject().await?);
        let raced = check.race(vec![check.draft(&one), check.draft(&two)]).await?;
        judge_pair(check, &mut judge, [&one, &two], &raced).await?;
        if judge.found_something() || raced.overlapped() {
            return Ok(judge);
        }
    }
    judge.unseen("the two requests never overlapped: the first answer came before the other request was complete");
    Ok(judge)
}

async fn judge_pair(check: &Check<'_>, judge: &mut Judge, [one, two]: [&Subject; 2], raced: &Raced) -> Result<(), Ended> {
    let identities = check.identities();
    let named: Vec<_> = raced.replies.iter().flatten().filter_map(|answer| identities.of(answer)).collect();
    if let [of_one, of_two] = named.as_slice()
        && of_one == of_two
    {
        judge.fail(Severity::WrongAnswer, "two requests with different keys got the same answer");
    }
    let succeeded = raced.replies.iter().flatten().filter(|answer| answer.is_success()).count() as u64;
    if succeeded < 2 {
        judge.unseen("one of the two requests did not succeed");
    }
    let counts = if check.plan.mark.is_some() {
        vec![check.count(one).await?, check.count(two).await?]
    } else {
        vec![check.count(one).await?]
    };
    if counts.contains(&None) {
        // Two things that were made, by the user's own word, are two effects.
        if !(identities.is_given && named.len() == 2) {
            judge.unseen("effects are not counted: use --count, --count-cmd or --ledger");
        }
        return Ok(());
    }
    let effects: u64 = counts.iter().flatten().sum();
    if effects < succeeded || (succeeded == 2 && counts.contains(&Some(0))) {
        judge.fail(Severity::WrongAnswer, format!("{succeeded} requests with different keys got success, but there were only {effects} effects"));
    } else if effects > 2 {
        judge.fail(Severity::DoubleExecution, format!("two keys had {effects} effects"));
    }
    Ok(())
}
