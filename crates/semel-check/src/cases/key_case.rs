//! A collation that ignores case.
//!
//! It is the default in MySQL: `Key-A` and `key-a` are the same row. With base64 keys such collisions happen by chance.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::second_key;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "key.case",
    star: false,
    sent: "two keys that differ only in case",
    right: "two effects",
    severity: Some(Severity::WrongAnswer),
    fix: "Compare keys byte by byte: check the collation of the column.",
    needs: &[],
    writes: |_| 2,
    counts: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let one = check.subject().await?;
    let key = format!("semel-check-{}", one.key);
    let first = match check.send(check.draft(&one).key(format!("{key}-aBcD"))).await {
        Ok(answer) if answer.is_success() => answer,
        Ok(answer) if answer.is_refusal() => return Err(Ended::NotRun("the API takes no keys but UUIDs".into())),
        other => return Err(Ended::Inconclusive(format!("the first request gets {}", told(&other)))),
    };
    let mut judge = Judge::default();
    let two = check.subject().await?;
    second_key(check, &mut judge, &first, &two, &format!("{key}-AbCd"), "keys that differ in case").await?;
    Ok(judge)
}
