//! The client corrects an invalid request and keeps the key.
//!
//! Some APIs release the key when validation fails (Stripe), others keep it; both are acceptable. Sending the old validation error
//! again for a request that is now correct is not.

use crate::answer::told;
use crate::body::Body;
use crate::check::Check;
use crate::profile::Corrected;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::shared::one_effect_if_counted;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "fix.4xx",
    star: false,
    sent: "an invalid body, then the correct one under the same key",
    right: "depends on the profile: executed, or refused as another request",
    severity: Some(Severity::Note),
    fix: "Do not store validation errors, so that a corrected request can reuse its key.",
    needs: &[Need::Json],
    writes: |_| 3,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let refused = check.send(check.draft(&subject).body(Body::Json("{}".into()))).await;
    let refused = match refused {
        Ok(answer) if answer.is_refusal() => answer,
        other => return Err(Ended::Inconclusive(format!("an empty object is not refused ({})", told(&other)))),
    };
    let reply = check.send(check.draft(&subject)).await;
    let mut judge = Judge::default();
    one_effect_if_counted(check, &mut judge, &subject).await?;
    let profile = check.plan.profile;
    match &reply {
        Ok(answer) if answer.is_success() && profile.corrected == Corrected::Refused => {
            judge.fail(Severity::Note, format!("the corrected request is executed; the profile {} keeps refusals", profile.name));
        }
        Ok(answer) if answer.is_success() => judge.remark("a corrected request may reuse its key"),
        Ok(answer) if answer.status == refused.status && answer.has_same_body_as(&refused) => {
            judge.fail(Severity::Note, format!("the corrected request gets the old refusal ({})", answer.status));
        }
        Ok(answer) if answer.is_refusal() && profile.corrected == Corrected::Executed => {
            let words = format!("the corrected request is refused with {}; the profile {} does not keep validation errors", answer.status, profile.name);
            judge.fail(Severity::Note, words);
        }
        Ok(answer) if profile.is_reused(answer.status) => judge.remark("a corrected request needs a new key"),
        other => judge.fail(Severity::Note, format!("the corrected request gets {}", told(other))),
    }
    Ok(judge)
}
