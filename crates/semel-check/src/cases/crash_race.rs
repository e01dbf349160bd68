//! Everybody comes back at once.
//!
//! After a crash all clients retry together, into a server that is just starting. A recovery that clears old locks first, or two
//! workers that both take over, execute twice.

use crate::check::Check;
use crate::target::Partly;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::Duration;
use std::time::Instant;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.race",
    star: false,
    sent: "killed at work, and many retries while it starts again",
    right: "one effect",
    severity: Severity::DoubleExecution,
    fix: "Let one instance take over by an atomic swap; never clear locks at start.",
    needs: &[Need::Crash],
    writes: |plan| 2 * (plan.concurrency + 1),
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if check.trials().await?.forgets() {
        return Err(Ended::NotRun("keys do not survive a restart: see `crash.answered`".into()));
    }
    let mut judge = Judge::default();
    for at_effect in [false, true] {
        let subject = check.subject().await?;
        let request = check.request(check.slowed(&subject))?;
        let begun = check.target.begin(&request, Partly::Whole).await;
        let deadline = Instant::now() + check.plan.timeout;
        // Where effects are not counted, half of the time that it takes has to do.
        if at_effect && check.effects.is_none() {
            tokio::time::sleep(check.latency() / 2).await;
        }
        while at_effect && check.effects.is_some() && check.count_now(&subject).await == 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        check.kill().await?;
        drop(begun);
        let retries = async {
            // As soon as somebody listens, before it says that it is ready.
            let deadline = Instant::now() + Duration::from_secs(30);
            while !check.target.accepts().await && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            check.race((0..check.plan.concurrency).map(|_| check.slowed(&subject)).collect()).await
        };
        let (started, raced) = tokio::join!(check.start(), retries);
        started?;
        let replies = raced?.replies;
        if replies.iter().all(Result::is_err) {
            judge.unseen("no retry got an answer while the API started again");
        }
        check.at_most_once(&mut judge, &subject, &replies).await?;
    }
    Ok(judge)
}
