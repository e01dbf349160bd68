//! A new version of a client library writes JSON members in another order.
//!
//! The request means the same. Most protocols compare bodies by meaning; UCP hashes the raw bytes, so there a refusal is right.

use crate::answer::told;
use crate::body::Body;
use crate::check::Check;
use crate::profile::Sameness;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::{one_effect_if_counted, replayed};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "retry.spelling",
    star: false,
    sent: "the retry with reordered members, white space and escapes",
    right: "depends on the profile: a replay or a refusal",
    severity: Some(Severity::ClientPain),
    fix: "Compare JSON by meaning, not byte by byte.",
    needs: &[Need::Json],
    writes: |_| 3,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    check.can_tell_replays()?;
    let subject = check.subject().await?;
    let first = check.first(&subject).await?;
    let respelled = check.draft(&subject).change(Body::respelled);
    let respelled = respelled.ok_or_else(|| Ended::NotRun("the body is too small to be spelled differently".into()))?;
    let reply = check.send(respelled).await;
    let mut judge = Judge::default();
    one_effect_if_counted(check, &mut judge, &subject).await?;
    match &reply {
        Ok(again) if check.is_first_again(&first, again) => {
            // If the protocol compares bytes, this is more than it asks for, and does no harm.
            judge.remark("bodies are compared by meaning");
        }
        // A refusal of every retry is another fault.
        Ok(again) if again.is_refusal() && replayed(check, &subject, &first).await.is_err() => {
            judge.unseen("retries are not replayed: see `retry`");
        }
        Ok(again) if again.is_refusal() => match check.plan.profile.same {
            Sameness::Meaning => {
                judge.fail(Severity::ClientPain, format!("another spelling of the same JSON is refused with {}", again.status));
            }
            Sameness::Bytes | Sameness::Either => judge.remark("bodies are compared by bytes"),
        },
        other if !judge.found_something() => {
            judge.fail(Severity::ClientPain, format!("another spelling of the same JSON gets {}", told(other)));
        }
        _ => {}
    }
    Ok(judge)
}
