//! The same handler under another spelling of its path.
//!
//! A proxy or middleware scopes keys by the literal path, while the framework behind it treats `/payments/` like `/payments`. A client that
//! changes its base URL then executes the request again.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "path.spelling",
    star: false,
    sent: "//path, /path/, %-encoding and ;x with the same key",
    right: "one effect, or a refusal",
    severity: Some(Severity::DoubleExecution),
    fix: "Scope keys by the matched route, not by the literal path.",
    needs: &[],
    writes: |_| 5,
    counts: |_| 6,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let path = &check.plan.send.path;
    let (path, query) = path.split_once('?').map_or((path.as_str(), String::new()), |(path, query)| (path, format!("?{query}")));
    let mut spellings = vec![format!("/{path}"), format!("{}/", path.trim_end_matches('/')), format!("{path};x=1")];
    if path.ends_with('/') && path.len() > 1 {
        spellings[1] = path.trim_end_matches('/').to_owned();
    }
    if let Some(first) = path.chars().nth(1).filter(char::is_ascii_alphanumeric) {
        spellings.push(format!("/%{:02x}{}", u32::from(first), &path[2..]));
    }
    let subject = check.subject().await?;
    let mut replies = vec![Ok(check.first(&subject).await?)];
    let mut judge = Judge::default();
    let before = check.count(&subject).await?;
    let mut seen = before.unwrap_or(0);
    for spelling in spellings {
        let reply = check.send(check.draft(&subject).path(format!("{spelling}{query}"))).await;
        let now = check.count(&subject).await?.unwrap_or(0);
        if now > seen {
            judge.fail(Severity::DoubleExecution, format!("executed again as {spelling} ({}): {now} effects", told(&reply)));
            seen = now;
        }
        replies.push(reply);
    }
    if before.is_none() {
        check.at_most_once(&mut judge, &subject, &replies).await?;
    }
    Ok(judge)
}
