//! After a crash, all clients retry at once.
//!
//! They retry while the server is still starting. A recovery that clears old locks first, or two workers that take over the same
//! request, execute it twice.

use crate::answer::Reply;
use crate::check::Check;
use crate::polls::Polls;
use crate::request::Subject;
use crate::target::{Partly, Raced};
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::Duration;
use std::time::Instant;
use super::shared::{self, ATTEMPTS};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.race",
    star: false,
    sent: "killed while a request is running, then many concurrent retries during the restart",
    right: "one effect",
    severity: Some(Severity::DoubleExecution),
    fix: "Let one instance take over with an atomic compare-and-swap; never clear locks at startup.",
    needs: &[Need::Crash],
    writes: |plan| 2 * ATTEMPTS * (plan.concurrency + 1),
    counts: |_| 2 * ATTEMPTS,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if check.trials().await?.forgets() {
        return Err(Ended::NotRun("keys do not survive a restart: see `crash.answered`".into()));
    }
    let mut judge = Judge::default();
    for at_effect in [false, true] {
        let mut missed = None;
        for _ in 0..ATTEMPTS {
            missed = race_after_crash(check, &mut judge, at_effect).await?;
            if missed.is_none() || judge.found_something() {
                break;
            }
        }
        if let Some(missed) = missed {
            judge.unseen(missed);
        }
    }
    Ok(judge)
}

/// Kills the API while a request runs, before its effect or after it, and races retries while it starts again. Returns what was not
/// seen, if the crash came at another moment or the retries did not overlap.
async fn race_after_crash(
    check: &Check<'_>,
    judge: &mut Judge,
    at_effect: bool,
) -> Result<Option<&'static str>, Ended> {
    let subject = check.subject().await?;
    let request = check.request(check.slowed(&subject))?;
    let Ok(begun) = check.target.begin(&request, Partly::Whole).await else {
        return Ok(Some("the request that the crash interrupts could not be sent"));
    };
    let saw_effect = if !at_effect {
        false
    } else if check.effects.is_some() {
        let mut polls = Polls::new(check.plan.timeout);
        let mut saw_effect = false;
        while !saw_effect && !begun.is_answered() && polls.next().await {
            saw_effect = check.count_now(&subject).await > 0;
        }
        saw_effect
    } else {
        // Where effects are not counted, half of the time that the request takes has to do.
        tokio::time::sleep(check.latency() / 2).await;
        false
    };
    check.kill().await?;
    // What the API sent before it died has come by now.
    let was_answered = begun.has_succeeded();
    drop(begun);
    let (started, raced) = tokio::join!(check.start(), race_when_it_listens(check, &subject));
    started?;
    let raced = raced?;
    check.at_most_once(judge, &subject, &raced.replies).await?;
    let is_answer = |reply: &&Reply| reply.is_ok();
    Ok(if was_answered {
        Some("the API had answered before it was killed: use --slow")
    } else if at_effect && !saw_effect {
        Some(shared::unseen(check, "no effect was seen before the API was killed"))
    } else if raced.replies.iter().filter(is_answer).count() < 2 || !raced.overlapped() {
        Some("no two retries were at the API at the same time while it started")
    } else {
        None
    })
}

/// Races as soon as the port is open, before the API says that it is ready.
async fn race_when_it_listens(check: &Check<'_>, subject: &Subject) -> Result<Raced, Ended> {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !check.target.accepts().await && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    check.race((0..check.plan.concurrency).map(|_| check.slowed(subject)).collect()).await
}
