//! The process died after it had reserved the key, but before the effect.
//!
//! If the lock never expires, every retry gets 409 for as long as the store keeps the key: a day, or forever.

use crate::check::Check;
use crate::trial::End;
use crate::trial::Moment;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.before",
    star: false,
    sent: "killed before the effect, then retries",
    right: "an answer in the end",
    severity: Some(Severity::Stuck),
    fix: "Give every reservation a lease. When it expires, find out what happened before the request is executed again.",
    needs: &[Need::Crash],
    writes: |_| 0,
    counts: |_| 0,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let trials = check.trials().await?;
    let mut judge = Judge::default();
    let mut seen = false;
    for trial in trials.at(Moment::Before) {
        seen = true;
        if let End::Stuck(last) = &trial.end {
            judge.fail(Severity::Stuck, format!("killed before the effect, the key stays blocked: {last} after {} s", check.plan.patience.as_secs()));
        }
        if trial.effects > 1 {
            judge.fail(Severity::DoubleExecution, format!("killed before the effect, then executed {} times", trial.effects));
        }
    }
    if !seen {
        judge.unseen(shared::unseen(check, "no crash came before the effect"));
    }
    Ok(judge)
}
