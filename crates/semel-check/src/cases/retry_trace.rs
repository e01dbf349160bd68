//! A tracing library adds a new `traceparent` to every attempt.
//!
//! A middleware that compares all headers takes each retry for a different request and refuses it. Idempotency then works on the
//! developer's machine, but not in production.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::one_effect_if_counted;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "retry.trace",
    star: false,
    sent: "the retry with another traceparent, User-Agent and connection",
    right: "a replay",
    severity: Some(Severity::ClientPain),
    fix: "Compare method, path and body; leave out headers that change with every attempt.",
    needs: &[],
    writes: |_| 3,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    check.can_tell_replays()?;
    let subject = check.subject().await?;
    let traced = |parent: &str, agent: &str| {
        check.draft(&subject).header("traceparent", parent).header("user-agent", agent).header("x-request-id", &parent[3..35])
    };
    let first = traced("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "client/1.0");
    let first = check.first_of(first).await?;
    let reply = check.send(traced("00-1bf7651916cd43dd8448eb211c80319d-c7ad6b7169203332-01", "client/1.1")).await;
    let mut judge = Judge::default();
    one_effect_if_counted(check, &mut judge, &subject).await?;
    if !matches!(&reply, Ok(again) if check.is_first_again(&first, again)) && !judge.found_something() {
        // With the very headers of the first request, a retry is replayed?
        let plain = check.send(traced("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "client/1.0")).await;
        if matches!(&plain, Ok(again) if check.is_first_again(&first, again)) {
            judge.fail(Severity::ClientPain, format!("a retry with other tracing headers gets {}", told(&reply)));
        } else {
            judge.unseen("retries are not replayed: see `retry`");
        }
    }
    Ok(judge)
}
