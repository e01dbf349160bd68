//! The key of a payment, sent with a refund.
//!
//! Protocols differ on whether a key stands for one request of an operation or of the whole account. Under no protocol does a refund
//! get the answer of a payment.

use crate::answer::{Reply, told};
use crate::call::Call;
use crate::check::Check;
use crate::profile::Scope;
use crate::request::Draft;
use crate::verdict::{Ended, Judge, Outcome, Severity};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "target",
    star: false,
    sent: "the same key and body with another query, and to each --other-send",
    right: "depends on the profile: executed for itself, or refused; never the first answer",
    severity: Some(Severity::WrongAnswer),
    fix: "Make operation, path and query part of the scope of a key, or of the fingerprint.",
    needs: &[],
    writes: |plan| 3 * (1 + plan.other_send.len()),
    counts: |plan| 2 * (1 + plan.other_send.len()),
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let mut judge = Judge::default();
    another_query(check, &mut judge).await?;
    for call in &check.plan.other_send {
        another_operation(check, &mut judge, call).await?;
    }
    Ok(judge)
}

/// What another request under a used key came to.
struct Seen {
    reply: Reply,
    is_first_again: bool,
    was_executed: bool,
    /// Whether the first answer could be told from another one.
    can_tell: bool,
}

/// Sends another request under a used key. `Err` with its reply if it is not accepted under a key of its own either: a refusal by the
/// API itself must not look like one because of the key.
async fn under_a_used_key<'p>(
    check: &Check<'p>,
    change: impl Fn(Draft<'p>) -> Draft<'p>,
) -> Result<Result<Seen, Reply>, Ended> {
    let control = check.subject().await?;
    let alone = check.send(change(check.draft(&control))).await;
    if !matches!(&alone, Ok(answer) if answer.is_success()) {
        return Ok(Err(alone));
    }
    let subject = check.subject().await?;
    check.allow(&subject, 2);
    let first = check.first(&subject).await?;
    let before = check.count(&subject).await?;
    let reply = check.send(change(check.draft(&subject))).await;
    // Whatever it answers: what had an effect of its own was no replay.
    let was_executed = before < check.count(&subject).await?;
    let is_first_again = matches!(&reply, Ok(answer) if check.is_first_again(&first, answer)) && !was_executed;
    let can_tell = was_executed || check.answers_name_things();
    Ok(Ok(Seen { reply, is_first_again, was_executed, can_tell }))
}

/// A parameter that the API does not know: a replay does no harm, but shows that queries are not compared.
async fn another_query(check: &Check<'_>, judge: &mut Judge) -> Result<(), Ended> {
    let send = &check.plan.send;
    let mark = if send.path.contains('?') { '&' } else { '?' };
    let query = format!("{mark}semel_check=1");
    let seen = match under_a_used_key(check, |draft| draft.add_to_path(&query)).await? {
        Ok(seen) => seen,
        Err(_) if !check.plan.other_send.is_empty() => {
            judge.remark("the API accepts no additional query parameter");
            return Ok(());
        }
        Err(alone) => {
            judge.unseen(format!("an additional query parameter is not accepted ({}): use --other-send", told(&alone)));
            return Ok(());
        }
    };
    match &seen.reply {
        Ok(answer) if answer.is_success() && !seen.can_tell => {
            judge.unseen("answers of different requests cannot be distinguished: use --count or --identity");
        }
        Ok(_) if seen.is_first_again => judge.fail(
            Severity::Note,
            format!(
                "queries are not compared: {send}{query} got the answer of {send}. If your API has query parameters that matter, name a request with one in --other-send"
            ),
        ),
        Ok(_) if seen.was_executed => judge.remark("another query was executed for itself"),
        Ok(answer) if answer.is_success() || answer.is_refusal() => {}
        other => judge.unseen(format!("another query gets {}", told(other))),
    }
    Ok(())
}

async fn another_operation(check: &Check<'_>, judge: &mut Judge, call: &Call) -> Result<(), Ended> {
    let profile = check.plan.profile;
    let seen = match under_a_used_key(check, |draft| draft.call(call)).await? {
        Ok(seen) => seen,
        Err(alone) => {
            judge.unseen(format!("{call} is not accepted under a key of its own ({}): choose another --other-send", told(&alone)));
            return Ok(());
        }
    };
    match (&seen.reply, profile.scope) {
        (Ok(answer), _) if answer.is_success() && !seen.can_tell => {
            judge.unseen("answers of different operations cannot be distinguished: use --count or --identity");
        }
        (Ok(_), _) if seen.is_first_again => {
            judge.fail(Severity::WrongAnswer, format!("{call} got the answer of {}", check.plan.send));
        }
        (Ok(answer), Scope::Caller) if answer.is_success() => judge.remark(format!(
            "{call} was executed: this API scopes keys by operation, the profile {} by caller",
            profile.name
        )),
        (Ok(answer), Scope::Operation) if profile.is_reused(answer.status) => judge.remark(format!(
            "{call} was refused with {}: this API scopes keys by caller, the profile {} by operation",
            answer.status, profile.name
        )),
        (Ok(answer), _) if answer.is_success() || answer.is_refusal() => {}
        (other, _) => judge.unseen(format!("{call} gets {}", told(other))),
    }
    Ok(())
}
