//! When you debug a double payment, you want to know which answer was a replay.
//!
//! There is no standard header yet; Stripe's `Idempotent-Replayed` is the most common one.

use crate::answer::Answer;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::replayed;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "retry.marker",
    star: false,
    sent: "the same request twice",
    right: "a marker on the replay only",
    severity: Some(Severity::Note),
    fix: "Send `Idempotent-Replayed: true` with replays.",
    needs: &[],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let again = replayed(check, &subject, &first).await?;
    let is_mark = |name: &str| name.contains("replay") || name.contains("idempot") || name.contains("original-request");
    let marks = |answer: &Answer| -> Vec<(String, String)> {
        let headers = answer.headers.iter().filter(|(name, _)| is_mark(name.as_str()));
        headers.map(|(name, value)| (name.to_string(), format!("{value:?}"))).collect()
    };
    let (before, after) = (marks(&first), marks(&again));
    let in_body = again.at("/replayed") == Some("true") && first.at("/replayed") != Some("true");
    let mut judge = Judge::default();
    if !in_body && !after.iter().any(|mark| !before.contains(mark)) {
        judge.fail(Severity::Note, "nothing in a replay distinguishes it from the first answer");
    }
    Ok(judge)
}
