//! Runs the cases of a plan, one after the other.

use crate::cases::Case;
use crate::check::Check;
use crate::plan::Plan;
use crate::report::{CaseResult, Report, visible};
use crate::shell;
use crate::verdict::{Ended, Severity, Verdict};
use std::collections::BTreeSet;
use std::time::Duration;

/// What happens while a check runs.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A case begins.
    Begins(&'static str),
    /// A case has ended.
    Ended(&'a CaseResult),
}

/// Runs a check. Whatever happens, there is a report: what stopped it is in there.
pub async fn run(plan: &Plan, told: &mut (dyn FnMut(Progress<'_>) + Send)) -> Report {
    let mut report = Report::of(plan);
    let check = match Check::new(&plan.settings, plan.most_requests()) {
        Ok(check) => check,
        Err(why) => {
            report.stopped = Some(plan.settings.secrets.redact(&why));
            return report;
        }
    };
    for case in &plan.cases {
        let result = match plan.can_run(case) {
            Err(need) => CaseResult::not_run(case, need),
            Ok(()) if report.stopped.is_some() => CaseResult::not_run(case, "the run was stopped"),
            Ok(()) => {
                told(Progress::Begins(case.name));
                let (result, stopped) = run_case(&check, case).await;
                report.stopped = stopped;
                result
            }
        };
        told(Progress::Ended(&result));
        report.cases.push(result);
    }
    for (watched, effects) in check.late_effects().await {
        if let Some(result) = blamed(&mut report.cases, watched.case) {
            result.turn_out(
                Severity::DoubleExecution,
                format!(
                    "{effects} effects of {} at the end of the run, more than right after the case",
                    watched.subject.reference
                ),
            );
        }
    }
    report.requests = check.target.limits.sent();
    clean_up(&check, &mut report).await;
    report
}

/// The case to which late effects of a case belong. A control sends a retry, too, but is not about the API: there it is `retry`.
fn blamed<'r>(cases: &'r mut [CaseResult], case: &str) -> Option<&'r mut CaseResult> {
    let is_control = case.starts_with("control.");
    let has_retry = cases.iter().any(|result| result.name == "retry" && result.verdict != Verdict::NotRun);
    let name = if is_control && has_retry { "retry" } else { case };
    cases.iter_mut().find(|result| result.name == name)
}

async fn run_case(check: &Check<'_>, case: &'static Case) -> (CaseResult, Option<String>) {
    check.begin_case(case.name, (case.writes)(check.plan));
    let outcome = (case.run)(check).await;
    check.end_case().await;
    let plan = check.plan;
    let (verdict, severity, words, stopped) = match outcome {
        Ok(judge) => {
            let (verdict, severity, words) = judge.verdict();
            match check.target.limits.stopped() {
                // Counted is counted. Everything else may be so because nothing more was sent.
                Some(why) if severity != Some(Severity::DoubleExecution) => {
                    let words = [why.to_owned()].into_iter().chain(words).collect();
                    (Verdict::Inconclusive, None, words, Some(why.to_owned()))
                }
                stopped => (verdict, severity, words, stopped.map(str::to_owned)),
            }
        }
        Err(Ended::Inconclusive(why)) => {
            (Verdict::Inconclusive, None, vec![why], check.target.limits.stopped().map(str::to_owned))
        }
        Err(Ended::NotRun(why)) => (Verdict::NotRun, None, vec![why], None),
        Err(Ended::Abort(why)) => (Verdict::Inconclusive, None, vec![why.clone()], Some(why)),
    };
    let stopped = stopped.map(|why| visible(&plan.secrets.redact(&why)));
    let mut result = CaseResult::new(case, verdict, severity);
    result.details = words.iter().map(|words| visible(&plan.secrets.redact(words))).collect();
    if matches!(verdict, Verdict::Fail | Verdict::Suspect | Verdict::Inconclusive) {
        let exchanges = check.transcript();
        result.reproduce = exchanges.iter().map(|exchange| exchange.request.as_curl(plan)).collect();
        result.replies = exchanges.into_iter().map(|exchange| exchange.reply).collect();
    }
    (result, stopped)
}

async fn clean_up(check: &Check<'_>, report: &mut Report) {
    let Some(undo) = &check.plan.undo else { return };
    let references: BTreeSet<String> = check.references().into_iter().collect();
    for reference in references {
        if let Err(why) = shell::output("--undo", undo, &reference, Duration::from_secs(30)).await {
            report.remarks.push(check.plan.secrets.redact(&why));
            return;
        }
    }
}
