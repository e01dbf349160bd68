//! The load balancer sends the retry to the other instance.
//!
//! A store in memory, or a lock in the process, protects one instance. Two instances with one each are no protection at all.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.nodes",
    star: false,
    sent: "the same key at two nodes at once",
    right: "one effect",
    severity: Severity::DoubleExecution,
    fix: "Keep keys in a store that all instances share.",
    needs: &[Need::Also, Need::Count],
    writes: |plan| plan.concurrency,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let nodes = 1 + check.plan.also.len();
    let drafts = (0..check.plan.concurrency).map(|number| check.draft(&subject).node(number % nodes)).collect();
    let raced = check.race(drafts).await?;
    let mut judge = Judge::default();
    if !raced.overlapped() {
        judge.unseen("no two requests were under way at the same time");
    }
    check.at_most_once(&mut judge, &subject, &raced.replies).await?;
    Ok(judge)
}
