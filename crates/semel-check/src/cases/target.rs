//! The key of a payment, sent with a refund.
//!
//! Whether a key names one request of the operation or of the whole account differs between protocols. No protocol answers a
//! refund with a payment.

use crate::check::Check;
use crate::verdict::{Judge, Outcome, Severity};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "target",
    star: false,
    sent: "the same key and body for another operation",
    right: "never the first answer",
    severity: Severity::WrongAnswer,
    fix: "Make operation and path part of the scope of a key, or of the fingerprint.",
    needs: &[Need::OtherSend],
    writes: |plan| 2 * plan.other_send.len(),
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    for call in &check.plan.other_send {
        let subject = check.subject().await?;
        check.allow(&subject, 2);
        let first = check.first(&subject).await?;
        let reply = check.send(check.draft(&subject).call(call)).await;
        if matches!(&reply, Ok(answer) if check.is_first_again(&first, answer)) {
            judge.fail(Severity::WrongAnswer, format!("{call} got the answer of {}", check.plan.send));
        }
    }
    Ok(judge)
}
