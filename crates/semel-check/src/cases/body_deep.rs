//! Bodies that differ where a fingerprint does not look.
//!
//! 9007199254740993 and 9007199254740992 are the same number in a double. `[1,2]` and `[2,1]` are the same set. `{"a":null}` and `{}`
//! are the same to many a mapper. None of them is the same request.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::shared::one_effect_if_counted;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "body.deep",
    star: false,
    sent: "null and absent, another array order, 2^53 and 2^53 + 1",
    right: "a refusal",
    severity: Severity::WrongAnswer,
    fix: "Fingerprint the canonical text with exact numbers. Do not parse numbers into doubles, sort arrays or drop nulls.",
    needs: &[Need::Json, Need::Hostile],
    writes: |_| 9,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    let mut tried = 0;
    for (what, one, other) in [
        ("2^53 and 2^53 + 1", Some("9007199254740992"), Some("9007199254740993")),
        ("the order of an array", Some("[1,2]"), Some("[2,1]")),
        ("null and absent", Some("null"), None),
    ] {
        let subject = check.subject().await?;
        let with = |value: Option<&str>| match value {
            None => Some(check.draft(&subject)),
            Some(value) => check.draft(&subject).change(|body| body.with("/semel_check", value)),
        };
        let (Some(one), Some(other)) = (with(one), with(other)) else { continue };
        let Ok(first) = check.first_of(one).await else { continue };
        tried += 1;
        match check.send(other).await {
            Ok(answer) if check.is_first_again(&first, &answer) => {
                judge.fail(Severity::WrongAnswer, format!("another request got the first answer: {what}"));
            }
            Ok(answer) if answer.is_success() => one_effect_if_counted(check, &mut judge, &subject).await?,
            _ => {}
        }
    }
    if tried == 0 {
        judge.unseen("the API accepts no additional member");
    }
    Ok(judge)
}
