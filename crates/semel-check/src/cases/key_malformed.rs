//! A key that is not valid, and a server that ignores it.
//!
//! If an empty key counts as no key, the request is executed every time. If the database rejects a key of 5,000 characters, the
//! client gets a 500.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "key.malformed",
    star: false,
    sent: "an empty key, one of 5,000 characters and one with odd bytes, twice each",
    right: "400, or one effect",
    severity: Some(Severity::ClientPain),
    fix: "Validate the key first, and answer 400.",
    needs: &[],
    writes: |_| 6,
    counts: |_| 6,
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
                let identities = check.identities();
                let useless = format!("{what} is accepted, but the request is executed every time");
                match (check.count(&subject).await?, identities.count(&replies)) {
                    (Some(2..), _) => judge.fail(Severity::ClientPain, useless),
                    (Some(_), _) => {}
                    (None, 2..) if identities.is_given => judge.fail(Severity::ClientPain, useless),
                    (None, 2..) => judge.suspect(format!("{what} is accepted, and a retry gets another answer. Use --count to be sure")),
                    (None, _) => judge.unseen("effects are not counted: use --count, --count-cmd or --ledger"),
                }
            }
            other => judge.fail(Severity::ClientPain, format!("{what} gets {}", told(other))),
        }
    }
    Ok(judge)
}
