//! "409, try again later", forever.
//!
//! A retry that can never succeed keeps clients busy, and no operator learns about it. An answer that says "outcome unknown" is better
//! than a lock that never ends.

use crate::check::Check;
use crate::trial::End;
use crate::trial::Moment;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.end",
    star: false,
    sent: "retries after each crash, for as long as --patience lasts",
    right: "an answer, or \"outcome unknown\"",
    severity: Some(Severity::Stuck),
    fix: "End every reservation: with the answer, with evidence that nothing happened, or with an answer that says that the outcome is unknown.",
    needs: &[Need::Crash],
    writes: |_| 0,
    counts: |_| 0,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let trials = check.trials().await?;
    let mut judge = Judge::default();
    for trial in trials.all() {
        if let End::Stuck(last) = &trial.end {
            let when = match trial.moment {
                Moment::Unanswered => "before the answer",
                Moment::Before => "before the effect",
                Moment::Effect => "after the effect",
                Moment::Answered => "after the answer",
            };
            judge.fail(Severity::Stuck, format!("killed {when}: still {last} after {} s", check.plan.patience.as_secs()));
        }
    }
    Ok(judge)
}
