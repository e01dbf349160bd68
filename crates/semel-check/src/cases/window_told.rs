//! How long may a client retry?
//!
//! Without a documented lifetime, clients assume 24 hours. A response header with the expiry time, or a published document, answers
//! the question.

use crate::body::Body;
use crate::call::Call;
use crate::check::Check;
use crate::request::Subject;
use crate::verdict::{Judge, Outcome, Severity};
use http::Method;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "window.told",
    star: false,
    sent: "a request, and a look at what is published",
    right: "the lifetime of keys is published",
    severity: Some(Severity::Note),
    fix: "Send `Idempotency-Key-Expires`, or publish the lifetime.",
    needs: &[],
    writes: |_| 1,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let in_header = first.headers.keys().any(|name| {
        let name = name.as_str();
        name.contains("idempot") && (name.contains("expir") || name.contains("lifetime") || name.contains("ttl"))
    });
    let mut judge = Judge::default();
    if in_header {
        return Ok(judge);
    }
    let nobody = Subject { key: String::new(), reference: String::new() };
    let well_known = Call { method: Method::GET, path: "/.well-known/idempotency".into() };
    let contract = check.send(check.draft(&nobody).call(&well_known).body(Body::Empty).keys([])).await;
    let tells = matches!(&contract, Ok(answer) if answer.is_success() && ["retention", "lifetime", "window", "expire"].iter().any(|word| answer.text().contains(word)));
    if !tells {
        judge.fail(Severity::Note, "neither a response header nor a published document says how long keys are kept");
    }
    Ok(judge)
}
