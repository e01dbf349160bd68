//! The body is replayed, but not the address of the new resource.
//!
//! Several middlewares store only status and body. A client that follows `Location` works until its first retry.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::replayed;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "retry.headers",
    star: false,
    sent: "the same request twice",
    right: "equal Location, ETag and Content-Type",
    severity: Some(Severity::ClientPain),
    fix: "Store the headers that describe the result together with the body, and replay them.",
    needs: &[],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let again = replayed(check, &subject, &first).await?;
    let mut judge = Judge::default();
    for name in ["location", "etag", "content-type", "content-language", "link"] {
        let (before, after) = (first.header(name), again.header(name));
        match (before, after) {
            (Some(_), None) => judge.fail(Severity::ClientPain, format!("{name} is missing from the replay")),
            (Some(before), Some(after)) if before != after => {
                judge.fail(Severity::ClientPain, format!("{name} differs in the replay"));
            }
            _ => {}
        }
    }
    Ok(judge)
}
