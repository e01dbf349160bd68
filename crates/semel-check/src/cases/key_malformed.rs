//! A key that is not one, and a server that takes it for none.
//!
//! An empty key that counts as absent is executed every time; 5,000 characters that the database refuses are a 500.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case};

pub(super) const CASE: Case = Case {
    name: "key.malformed",
    star: false,
    sent: "an empty key, one of 5,000 characters, odd bytes",
    right: "400, or honoured",
    severity: Severity::ClientPain,
    fix: "Check the key first, and answer 400.",
    needs: &[],
    writes: |_| 8,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let long = "k".repeat(5000);
    let odd: &[u8] = b"semel-check-\xff\xfe-\tkey";
    let mut judge = Judge::default();
    for (what, key) in [("an empty key", &b""[..]), ("a key of 5,000 characters", long.as_bytes()), ("a key with odd bytes", odd)] {
        if check.draft(&check.subject().await?).key(key).build().is_none() {
            continue;
        }
        let subject = check.subject().await?;
        check.allow(&subject, 2);
        let mut replies = Vec::new();
        for _ in 0..2 {
            replies.push(check.send(check.draft(&subject).key(key)).await);
        }
        match &replies[0] {
            Ok(answer) if answer.is_refusal() => {}
            Ok(answer) if answer.is_success() => {
                let effects = check.count(&subject).await?;
                if effects.is_some_and(|effects| effects > 1) || check.identities().count(&replies) > 1 {
                    judge.fail(Severity::ClientPain, format!("{what} is accepted, and protects nothing"));
                }
            }
            other => judge.fail(Severity::ClientPain, format!("{what} gets {}", told(other))),
        }
    }
    Ok(judge)
}
