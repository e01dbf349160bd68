//! Two keys have to count as two effects.
//!
//! If effects are counted wrongly, the check reports faults that do not exist and misses real ones. So this case comes first: it sends
//! two requests with two keys and expects the count to grow by two. If it does not, the run stops.

use crate::answer::Answer;
use crate::answer::differing;
use crate::check::Check;
use crate::verdict::{Ended, Judge, Outcome};
use super::Case;

pub(super) const CASE: Case = Case {
    name: "control.count",
    star: true,
    sent: "two requests with two keys",
    right: "two effects",
    severity: None,
    fix: "Point --count at a place where effects can be seen. If your API refuses equal bodies, use --mark.",
    needs: &[],
    writes: |_| 3,
    counts: |_| 2,
    run: |check| Box::pin(run(check)),
};

async fn run(check: &Check<'_>) -> Outcome {
    let (one, two) = (check.subject().await?, check.subject().await?);
    let mut judge = Judge::default();
    let mut answers = Vec::new();
    for subject in [&one, &two] {
        let reply = check.send(check.draft(subject)).await;
        match reply {
            Ok(answer) if answer.is_success() => answers.push(answer),
            Ok(answer) => {
                // One line: a line of its own could be a command to a CI that reads along.
                let said = answer.text().split_whitespace().collect::<Vec<_>>().join(" ");
                let said: String = said.chars().take(200).collect();
                return Err(Ended::Abort(format!(
                    "the request itself is refused with {}: {said}. Check --send, --body and --header",
                    answer.status
                )));
            }
            Err(error) => return Err(Ended::Abort(format!("the request gets no answer: {error}"))),
        }
    }
    let (first, second) = (&answers[0], &answers[1]);
    check.learn_latency(first.came - first.sending);
    let effects = if check.plan.mark.is_some() {
        let counts = (check.count(&one).await?, check.count(&two).await?);
        if let (Some(of_one), Some(of_two)) = counts
            && (of_one != 1 || of_two != 1)
        {
            return Err(Ended::Abort(format!(
                "two keys, with a reference each, are counted as {of_one} and {of_two} effects instead of 1 and 1. Check --count, \
                 --count-at and --mark"
            )));
        }
        counts.0.zip(counts.1).map(|(one, two)| one + two)
    } else {
        check.count(&one).await?
    };
    match effects {
        Some(2) => {}
        Some(1) => {
            return Err(Ended::Abort(
                "two keys had one effect: the API may treat equal bodies as one request. Use --mark, so that each body is different".into(),
            ));
        }
        Some(other) => {
            return Err(Ended::Abort(format!("two keys are counted as {other} effects. Check --count and --count-at")));
        }
        None => judge.unseen("effects are not counted: use --count, --count-cmd or --ledger"),
    }
    check.learn_whether_answers_differ(!first.has_same_body_as(second));
    let again = check.send(check.draft(&one)).await.ok();
    check.learn_identities(places(first, second, again.as_ref(), [&one.reference, &two.reference]));
    Ok(judge)
}

/// Where answers name what was made: members that differ between two operations, and agree between an answer and its replay. Without a
/// replay, those that are called like identities.
fn places(first: &Answer, second: &Answer, again: Option<&Answer>, references: [&str; 2]) -> Vec<String> {
    let (Some(one), Some(two)) = (first.json(), second.json()) else { return Vec::new() };
    let mut places = differing(&one, &two);
    places.retain(|place| {
        let value = first.at(place).unwrap_or_default();
        !references.iter().any(|reference| value.contains(reference))
    });
    let again = again.filter(|answer| answer.is_success()).and_then(Answer::json);
    let same = again.map_or_else(Vec::new, |again| differing(&one, &again));
    let replayed: Vec<String> = places.iter().filter(|place| !same.contains(place)).cloned().collect();
    if !replayed.is_empty() && replayed.len() < places.len() || same.is_empty() {
        return replayed;
    }
    let is_identity = |place: &String| {
        let name = place.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        name == "id" || name.ends_with("_id") && name != "request_id" || name == "number" || name == "uuid"
    };
    places.retain(is_identity);
    places
}
