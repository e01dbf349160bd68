//! Two bodies whose difference a careless fingerprint misses.
//!
//! Parsed as floating-point numbers, 9007199254740993 and 9007199254740992 are equal. As sets, `[1,2]` and `[2,1]` are equal. Many mappers
//! read `{"a":null}` and `{}` the same way. They are different requests all the same.

use crate::answer::told;
use crate::body::Body;
use crate::check::Check;
use crate::request::{Draft, Subject};
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::another_body;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "body.deep",
    star: false,
    sent: "2^53 + 1 instead of 2^53, another array order, an absent member instead of null",
    right: "a refusal",
    severity: Some(Severity::WrongAnswer),
    fix: "Fingerprint the canonical text with exact numbers. Do not parse numbers as doubles, sort arrays or drop nulls.",
    needs: &[Need::Json, Need::Hostile],
    writes: |_| 3 * PAIRS.len(),
    counts: |_| 2 * PAIRS.len(),
    run: |check| Box::pin(run(check)),
};

/// What is different about the second body, and what both have in an additional member.
const PAIRS: [(&str, Option<&str>, Option<&str>); 3] = [
    ("a body with 2^53 + 1 instead of 2^53", Some("9007199254740992"), Some("9007199254740993")),
    ("a body with another array order", Some("[1,2]"), Some("[2,1]")),
    ("a body without a member that was null", Some("null"), None),
];

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    for (number, (what, one, other)) in PAIRS.into_iter().enumerate() {
        // A name for each: where members become columns, the first value decides on the type.
        let member = format!("/semel_check_{number}");
        let (subject, control) = (check.subject().await?, check.subject().await?);
        let (Some(one), Some(alone), Some(other)) =
            (with(check, &subject, &member, one), with(check, &control, &member, other), with(check, &subject, &member, other))
        else {
            return Err(Ended::NotRun("the body is not an object".into()));
        };
        let first = match check.first_of(one).await {
            Ok(first) => first,
            Err(Ended::Inconclusive(why)) => {
                judge.unseen(format!("{what} was not tried: {why}"));
                continue;
            }
            Err(ended) => return Err(ended),
        };
        // A refusal by validation must not look like a conflict.
        let alone = check.send(alone).await;
        if !matches!(&alone, Ok(answer) if answer.is_success()) {
            judge.unseen(format!("{what} was not tried: it is not accepted under a key of its own ({})", told(&alone)));
            continue;
        }
        let reply = check.send(other).await;
        another_body(check, &mut judge, &subject, &first, &reply, what).await?;
    }
    Ok(judge)
}

/// The subject's request with a value in an additional member, or without the member.
fn with<'p>(check: &Check<'p>, subject: &Subject, member: &str, value: Option<&str>) -> Option<Draft<'p>> {
    let draft = check.draft(subject);
    match value {
        None => Some(draft),
        Some(value) => draft.change(|body: &Body| body.with(member, value)),
    }
}
