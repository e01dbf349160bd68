//! Two customers pay at the same moment.
//!
//! A lock that is too wide only costs time. State that two requests share costs more: one of them gets the other's answer.

use crate::check::Check;
use crate::request::Subject;
use crate::target::Raced;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::Case;
use super::shared::ATTEMPTS;

pub(super) const CASE: Case = Case {
    name: "race.keys",
    star: false,
    sent: "two keys at once",
    right: "two effects",
    severity: Severity::WrongAnswer,
    fix: "Look answers up by the whole key, and keep no state of a request in anything shared.",
    needs: &[],
    writes: |_| 2 * ATTEMPTS,
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
    judge.unseen("never were the two requests complete at the API before the first answer came");
    Ok(judge)
}

async fn judge_pair(check: &Check<'_>, judge: &mut Judge, [one, two]: [&Subject; 2], raced: &Raced) -> Result<(), Ended> {
    let identities = check.identities();
    let named: Vec<_> = raced.replies.iter().flatten().filter_map(|answer| identities.of(answer)).collect();
    if let [of_one, of_two] = named.as_slice()
        && of_one == of_two
    {
        judge.fail(Severity::WrongAnswer, "two keys at the same time got one and the same answer");
    }
    let succeeded = raced.replies.iter().flatten().filter(|answer| answer.is_success()).count() as u64;
    if succeeded < 2 {
        judge.unseen("not both requests succeeded");
    }
    let counts = if check.plan.mark.is_some() {
        vec![check.count(one).await?, check.count(two).await?]
    } else {
        vec![check.count(one).await?]
    };
    if counts.contains(&None) {
        // Two things that were made, by the user's own word, are two effects.
        if !(identities.is_given && named.len() == 2) {
            judge.unseen("effects were not counted: give --count, --count-cmd or --ledger");
        }
        return Ok(());
    }
    let effects: u64 = counts.iter().flatten().sum();
    if effects < succeeded || (succeeded == 2 && counts.contains(&Some(0))) {
        judge.fail(Severity::WrongAnswer, format!("{succeeded} keys were told that they succeeded, and not each had its effect: {effects} in all"));
    } else if effects > 2 {
        judge.fail(Severity::DoubleExecution, format!("two keys had {effects} effects"));
    }
    Ok(())
}
