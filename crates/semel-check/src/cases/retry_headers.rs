//! The body is replayed, and the address of what was made is not.
//!
//! Several middlewares store status and body alone. A client that follows `Location` works until its first retry.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::replayed;
use super::{Case};

pub(super) const CASE: Case = Case {
    name: "retry.headers",
    star: false,
    sent: "the same request twice",
    right: "Location, ETag and Content-Type are equal",
    severity: Severity::ClientPain,
    fix: "Store the headers that tell of the result with the body, and replay them.",
    needs: &[],
    writes: |_| 2,
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
