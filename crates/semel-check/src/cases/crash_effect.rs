//! The worst moment: the money has moved, but nothing has been recorded yet.
//!
//! If a lock expires by time, the retry executes the request again: after 30 seconds in one library, at once in those that keep keys in
//! memory.

use crate::check::Check;
use crate::trial::Moment;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.effect",
    star: false,
    sent: "killed after the effect and before the answer, then retries",
    right: "one effect; then the answer, or \"outcome unknown\"",
    severity: Some(Severity::DoubleExecution),
    fix: "Commit the effect and the answer together. Where that is not possible, keep the key and report that the outcome is unknown.",
    needs: &[Need::Crash],
    writes: |_| 0,
    counts: |_| 0,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let trials = check.trials().await?;
    if trials.forgets() {
        return Err(Ended::NotRun("keys do not survive a restart: see `crash.answered`".into()));
    }
    let mut judge = Judge::default();
    let mut seen = false;
    for trial in trials.at(Moment::Effect) {
        seen = true;
        if trial.effects > 1 {
            judge.fail(Severity::DoubleExecution, format!("killed after the effect, then executed again: {} effects", trial.effects));
        }
    }
    if !seen {
        let words = match check.plan.slow {
            Some(_) => "--slow did not keep the answer back after the effect: every crash came before the effect or after the answer",
            None => "no crash came between the effect and the answer: use --slow, or count effects outside the API",
        };
        judge.unseen(shared::unseen(check, words));
    }
    Ok(judge)
}
