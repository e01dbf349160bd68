//! The developer of a client forgot the header, and nobody noticed.
//!
//! If the key is optional, a request without one is executed as often as it is sent. That may be intended, but it should be known.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "key.missing",
    star: false,
    sent: "a request without a key",
    right: "400 if a key is required",
    severity: Some(Severity::Note),
    fix: "Require the key wherever a second execution does harm.",
    needs: &[],
    writes: |_| 1,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let reply = check.send(check.draft(&subject).keys([])).await;
    let mut judge = Judge::default();
    match &reply {
        Ok(answer) if answer.status == 400 => {}
        Ok(answer) if answer.is_success() => {
            judge.fail(Severity::Note, "the key is optional: a client that forgets it is not protected");
        }
        other => judge.fail(Severity::Note, format!("a request without a key gets {} instead of 400", told(other))),
    }
    Ok(judge)
}
