//! A queue was stuck over the weekend, and the retry arrives after the key has expired.
//!
//! Most APIs execute it again. That is acceptable if it is documented; a refusal is safer.

use crate::answer::told;
use crate::check::Check;
use crate::profile::AfterWindow;
use crate::shell;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use std::time::Duration;
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "window",
    star: false,
    sent: "a retry after the key has expired",
    right: "depends on the profile: refused, or executed again",
    severity: Some(Severity::Note),
    fix: "Document how long keys are kept, and refuse expired keys for a while.",
    needs: &[Need::Expire],
    writes: |_| 2,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    check.allow(&subject, 2);
    check.first(&subject).await?;
    let expire = check.plan.expire.as_deref().unwrap_or_default();
    shell::output("--expire", expire, &subject.reference, Duration::from_secs(600)).await.map_err(Ended::Inconclusive)?;
    let reply = check.send(check.draft(&subject)).await;
    let effects = check.count(&subject).await?;
    let mut judge = Judge::default();
    let profile = check.plan.profile;
    match (&reply, effects) {
        (_, Some(2..)) => match profile.after_window {
            AfterWindow::Executed => judge.remark("an expired key is executed again, as the profile expects"),
            AfterWindow::Refused => {
                judge.fail(Severity::Note, format!("an expired key is executed again; the profile {} refuses it", profile.name));
            }
            AfterWindow::Either => judge.fail(Severity::Note, "an expired key is executed again"),
        },
        (Ok(answer), _) if answer.is_refusal() || answer.is_doubt(profile.doubt) => judge.remark("an expired key is refused"),
        (Ok(answer), _) if answer.is_success() => judge.unseen("the answer is still replayed: --expire had no effect"),
        (other, _) => judge.fail(Severity::Note, format!("a request with an expired key gets {}", told(other))),
    }
    Ok(judge)
}
