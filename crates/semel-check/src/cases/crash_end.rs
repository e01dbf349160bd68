//! "409, try again later", for ever.
//!
//! A retry that can never succeed keeps clients busy and tells nobody that somebody has to look. Doubt that says so is better than
//! a lock that does not end.

use crate::check::Check;
use crate::trial::End;
use crate::trial::Moment;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "crash.end",
    star: false,
    sent: "retries for as long as patience lasts",
    right: "an answer, or honest doubt",
    severity: Severity::Stuck,
    fix: "End every reservation: by the answer, by proof that nothing happened, or by doubt that is told.",
    needs: &[Need::Crash],
    writes: |_| 0,
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
