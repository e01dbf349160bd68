//! The load balancer sends the retry to the other instance.
//!
//! A store in memory, or a lock in the process, protects one instance. Two instances with one each are no protection at all.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::ATTEMPTS;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.nodes",
    star: false,
    sent: "the same key at two nodes at once",
    right: "one effect",
    severity: Severity::DoubleExecution,
    fix: "Keep keys in a store that all instances share.",
    needs: &[Need::Also],
    writes: |plan| ATTEMPTS * plan.concurrency,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let nodes = 1 + check.plan.also.len();
    let mut judge = Judge::default();
    for _ in 0..ATTEMPTS {
        let subject = check.subject().await?;
        let drafts = (0..check.plan.concurrency).map(|number| check.draft(&subject).node(number % nodes)).collect();
        let raced = check.race(drafts).await?;
        check.at_most_once(&mut judge, &subject, &raced.replies).await?;
        if judge.found_something() || raced.overlapped_between(|number| number % nodes) {
            return Ok(judge);
        }
    }
    judge.unseen("never were requests complete at two nodes before the first answer came");
    Ok(judge)
}
