//! The worst moment: the money has moved, and nobody has written that down.
//!
//! Where a lock lapses by time, the retry executes again: 30 seconds later in one library, at once in those that keep keys in memory.

use crate::check::Check;
use crate::trial::Moment;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.effect",
    star: false,
    sent: "killed after the effect and before the answer, then retries",
    right: "one effect; doubt, or the answer",
    severity: Severity::DoubleExecution,
    fix: "Commit effect and answer together. Where that cannot be, keep the key and report that the outcome is unknown.",
    needs: &[Need::Crash],
    writes: |_| 0,
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
        let words = "no crash was seen between the effect and the answer: give --slow, or a count outside of the API";
        judge.unseen(shared::unseen(check, words));
    }
    Ok(judge)
}
