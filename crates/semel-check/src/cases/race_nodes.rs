//! The load balancer sends the retry to another instance.
//!
//! Keys in memory, or a lock within the process, protect a single instance. With two instances, each has its own keys, and both
//! execute the request.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::ATTEMPTS;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "race.nodes",
    star: false,
    sent: "concurrent duplicates of one request at two nodes",
    right: "one effect",
    severity: Some(Severity::DoubleExecution),
    fix: "Keep keys in a store that all instances share.",
    needs: &[Need::Also],
    writes: |plan| ATTEMPTS * plan.concurrency,
    counts: |_| ATTEMPTS,
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
    judge.unseen("requests at two nodes never overlapped: the first answer came before another node had a complete request");
    Ok(judge)
}
