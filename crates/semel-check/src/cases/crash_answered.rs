//! A deployment came between the answer and the retry.
//!
//! Keys in memory, or in a cache that is not written to disk, are lost. A request that was already answered is executed again.

use crate::check::Check;
use crate::trial::End;
use crate::trial::Moment;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.answered",
    star: false,
    sent: "killed after the answer, then a retry",
    right: "a replay",
    severity: Some(Severity::LostAnswer),
    fix: "Store answers durably before you send them.",
    needs: &[Need::Crash],
    writes: |_| 0,
    counts: |_| 0,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let trials = check.trials().await?;
    let mut judge = Judge::default();
    let mut seen = false;
    for trial in trials.at(Moment::Answered) {
        seen = true;
        if trial.executed_twice() {
            let words = format!("keys do not survive a restart: an answered request was executed again, {} effects", trial.effects.max(2));
            judge.fail(Severity::DoubleExecution, words);
            return Ok(judge);
        }
        match (&trial.first, &trial.retried) {
            (Some(first), Some(again)) if check.is_first_again(first, again) => {}
            (_, Some(_)) => judge.fail(Severity::LostAnswer, "after a restart the retry gets another answer"),
            (_, None) => {
                let last = if let End::Stuck(last) = &trial.end { last } else { "doubt" };
                judge.fail(Severity::LostAnswer, format!("after a restart the answer is lost ({last})"));
            }
        }
    }
    if !seen {
        judge.unseen("no crash came after an answer");
    }
    Ok(judge)
}
