//! The key of a payment, sent with a refund.
//!
//! Whether a key names one request of the operation or of the whole account differs between protocols. No protocol answers a
//! refund with a payment.

use crate::answer::told;
use crate::check::Check;
use crate::profile::Scope;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "target",
    star: false,
    sent: "the same key and body for another operation",
    right: "by profile: executed for itself, or refused; never the first answer",
    severity: Severity::WrongAnswer,
    fix: "Make operation and path part of the scope of a key, or of the fingerprint.",
    needs: &[Need::OtherSend],
    writes: |plan| 2 * plan.other_send.len(),
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    let profile = check.plan.profile;
    for call in &check.plan.other_send {
        let subject = check.subject().await?;
        check.allow(&subject, 2);
        let first = check.first(&subject).await?;
        let before = check.count(&subject).await?;
        let reply = check.send(check.draft(&subject).call(call)).await;
        // Whatever it answers: what had an effect of its own was no replay.
        let was_executed = before < check.count(&subject).await?;
        match (&reply, profile.scope) {
            (Ok(answer), _) if answer.is_success() && !was_executed && !check.answers_name_things() => {
                judge.unseen("answers do not tell one operation from another: give --identity");
            }
            (Ok(answer), _) if check.is_first_again(&first, answer) && !was_executed => {
                judge.fail(Severity::WrongAnswer, format!("{call} got the answer of {}", check.plan.send));
            }
            (Ok(answer), Scope::Caller) if answer.is_success() => judge.remark(format!(
                "{call} was executed: keys belong to their operation here, and to the caller by {}",
                profile.name
            )),
            (Ok(answer), Scope::Operation) if profile.is_reused(answer.status) => judge.remark(format!(
                "{call} was refused with {}: keys belong to the caller here, and to their operation by {}",
                answer.status, profile.name
            )),
            (Ok(answer), _) if answer.is_success() || answer.is_refusal() => {}
            (other, _) => judge.unseen(format!("{call} gets {}", told(other))),
        }
    }
    Ok(judge)
}
