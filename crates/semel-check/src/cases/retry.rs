//! A client that got no answer sends the request again.
//!
//! This is what keys are for. Seen in published packages: a middleware whose handler has to ask whether the request is a retry, and which
//! executes it again if the handler forgets; and another that refuses every retry with 422.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "retry",
    star: true,
    sent: "the same request ten times",
    right: "one effect, and the same answer",
    severity: Some(Severity::DoubleExecution),
    fix: "Reserve the key before the work begins, and store the answer in the same commit as the effect.",
    needs: &[],
    writes: |_| 10,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let mut replies = vec![Ok(first.clone())];
    for _ in 1..10 {
        replies.push(check.send(check.draft(&subject)).await);
    }
    let mut judge = Judge::default();
    check.at_most_once(&mut judge, &subject, &replies).await?;
    let refused: Vec<String> =
        replies.iter().filter(|reply| !matches!(reply, Ok(answer) if answer.is_success())).map(told).collect();
    if let Some(status) = refused.first() {
        judge.fail(
            Severity::LostAnswer,
            format!("{} of 9 retries did not get the first answer, but {status}", refused.len()),
        );
    }
    let different = replies.iter().flatten().filter(|answer| answer.is_success());
    if different.clone().any(|answer| answer.status != first.status) {
        judge.fail(Severity::ClientPain, format!("the first answer is {}, and a retry gets another status", first.status));
    } else if !judge.found_something() && different.clone().any(|answer| !answer.has_same_body_as(&first)) {
        let is_another = different.into_iter().any(|answer| !check.is_first_again(&first, answer));
        let severity = if is_another { Severity::LostAnswer } else { Severity::ClientPain };
        judge.fail(severity, "retries get another body than the first request");
    }
    Ok(judge)
}
