//! The first answer set a session cookie, and the middleware stored all headers.
//!
//! A client that gets the replay gets the session.

use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::replayed;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "caller.cookie",
    star: false,
    sent: "the same request twice, if the first answer sets a cookie",
    right: "no Set-Cookie in the replay",
    severity: Some(Severity::Leak),
    fix: "Never store Set-Cookie with an answer.",
    needs: &[],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let Some(cookie) = first.header("set-cookie") else {
        return Err(Ended::NotRun("the first answer sets no cookie".into()));
    };
    let again = replayed(check, &subject, &first).await?;
    let mut judge = Judge::default();
    if again.headers.get_all("set-cookie").iter().any(|value| value.as_bytes() == cookie.as_bytes()) {
        judge.fail(Severity::Leak, "the replay sets the first answer's cookie again");
    }
    Ok(judge)
}
