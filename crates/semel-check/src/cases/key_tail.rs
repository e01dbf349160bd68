//! The column holds 64 characters, and the database truncates longer keys.
//!
//! Two keys with the same beginning become one, and the second request gets the first one's answer.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::second_key;
use super::Case;

pub(super) const CASE: Case = Case {
    name: "key.tail",
    star: false,
    sent: "two keys of 255 characters that differ only in the last one",
    right: "two effects",
    severity: Some(Severity::WrongAnswer),
    fix: "Refuse keys that are longer than the column; never truncate them.",
    needs: &[],
    writes: |_| 8,
    counts: |_| 5,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    for length in [255, 128, 64, 40] {
        let one = check.subject().await?;
        let key = |last: char| {
            let mut key = format!("{}-{}", one.key, "0".repeat(length)).chars().take(length - 1).collect::<String>();
            key.push(last);
            key
        };
        let first = match check.send(check.draft(&one).key(key('a'))).await {
            Ok(answer) if answer.is_refusal() => continue,
            Ok(answer) if answer.is_success() => answer,
            other => return Err(Ended::Inconclusive(format!("a key of {length} characters gets {}", told(&other)))),
        };
        let mut judge = Judge::default();
        let two = check.subject().await?;
        second_key(check, &mut judge, &first, &two, &key('b'), "keys that differ in their last character").await?;
        if length < 255 {
            judge.remark(format!("keys of {length} characters are accepted, longer ones refused"));
        }
        return Ok(judge);
    }
    Err(Ended::NotRun("the API takes no long keys".into()))
}
