//! A body that fails validation looks like a conflict, but is not one.
//!
//! Before the check believes that an API refuses another body *because of the key*, it has to see that the same body is accepted under
//! a key of its own.

use crate::answer::told;
use crate::check::Check;
use crate::verdict::{Judge, Outcome};
use super::{Case, Need};

pub(super) const CASE: Case = Case {
    name: "control.vary",
    star: false,
    sent: "the changed body under a key of its own",
    right: "the same class of status",
    severity: None,
    fix: "Vary another place with --vary, or use --other-body.",
    needs: &[Need::Vary],
    writes: |_| 1,
    counts: |_| 1,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let subject = check.subject().await?;
    let reply = check.send(check.varied(&subject)?).await;
    let accepted = matches!(&reply, Ok(answer) if answer.is_success());
    check.learn_varied(accepted);
    let mut judge = Judge::default();
    if !accepted {
        judge.unseen(format!(
            "the changed body is not accepted under a key of its own ({}): choose another place with --vary",
            told(&reply)
        ));
    }
    Ok(judge)
}
