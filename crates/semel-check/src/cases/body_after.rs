//! First ten euros; then, under the same key, ten thousand.
//!
//! A middleware that compares only the key answers the second request with the first one's success. The client believes that ten
//! thousand were paid.

use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::another_body;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "body.after",
    star: true,
    sent: "another body after the first request has completed",
    right: "a refusal, and no effect",
    severity: Some(Severity::DoubleExecution),
    fix: "Store a fingerprint of the request with the key, and refuse a key that comes with a different request.",
    needs: &[Need::Vary],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    if !check.varied_is_accepted() {
        return Err(Ended::Inconclusive("the changed body is not accepted under a key of its own: see `control.vary`".into()));
    }
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let reply = check.send(check.varied(&subject)?).await;
    let mut judge = Judge::default();
    another_body(check, &mut judge, &subject, &first, &reply, "another body").await?;
    Ok(judge)
}
