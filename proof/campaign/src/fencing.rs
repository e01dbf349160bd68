//! Whether an owner that had been fenced was ever listened to: by what Semel wrote down, and by the attempt under which the provider
//! was asked. Pure.

use crate::profile::Profile;
use std::collections::BTreeMap;

/// A record, at the end.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// In hexadecimal digits alone.
    pub(crate) operation_id: String,
    pub(crate) attempt: i64,
    pub(crate) state: String,
}

/// A line of a record's history.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) operation_id: String,
    pub(crate) version: i64,
    pub(crate) attempt: i64,
    pub(crate) happening: String,
    pub(crate) actor: String,
}

/// What was accepted, and should not have been. `charged`: under which attempts the provider made charges, by operation id.
pub(crate) fn accepted(
    kept: &[Kept],
    history: &[Line],
    charged: &BTreeMap<String, Vec<i64>>,
    profile: Profile,
) -> Vec<String> {
    let mut objections = Vec::new();
    // By a key alone nobody can say which of its operations is meant.
    for line in history
        .iter()
        .filter(|line| line.actor == "webhook:campaign" && line.happening.starts_with("settled_"))
    {
        objections
            .push(format!("I13 {}: {} by a webhook that named a key", line.operation_id, line.happening));
    }
    for told in history.chunk_by(|one, next| one.operation_id == next.operation_id) {
        let mut story = Story::default();
        for line in told {
            if let Err(what) = story.go_on(line) {
                objections.push(format!("I7 {}: {what}: {told:?}", line.operation_id));
                break;
            }
        }
    }
    for record in kept {
        let attempts = charged.get(&record.operation_id).map_or(&[][..], Vec::as_slice);
        // An earlier attempt was proved to have done nothing before this one began, unless this one took over from it; and nobody charges under
        // a later one.
        let earlier = |attempt: i64| attempt < record.attempt && profile.takes_over();
        if attempts.iter().any(|attempt| *attempt != record.attempt && !earlier(*attempt)) {
            let Kept { operation_id, attempt, state } = record;
            objections
                .push(format!("I7 {operation_id}: {state} by attempt {attempt}, charged by {attempts:?}"));
        }
    }
    objections
}

/// How far a history has got.
struct Story {
    version: i64,
    attempt: i64,
    /// Somebody else settled this attempt: its owner is fenced.
    settled: bool,
    over: bool,
}

impl Default for Story {
    fn default() -> Self {
        Self { version: 0, attempt: 1, settled: false, over: false }
    }
}

impl Story {
    fn go_on(&mut self, line: &Line) -> Result<(), &'static str> {
        if line.version <= self.version {
            return Err("two writes went by one version");
        }
        self.version = line.version;
        if line.happening == "remarked" {
            return Ok(());
        }
        if self.over {
            return Err("it was over, and went on");
        }
        if ["retried", "taken_over"].contains(&line.happening.as_str()) {
            if line.attempt != self.attempt + 1 {
                return Err("an attempt is missing, or there twice");
            }
            (self.attempt, self.settled) = (line.attempt, false);
            return Ok(());
        }
        if line.attempt != self.attempt {
            return Err("a write for an attempt that was over");
        }
        if line.actor == "owner" && self.settled {
            return Err("a write by an owner that was fenced");
        }
        self.settled |= line.happening.starts_with("settled_");
        self.over =
            ["settled_completed", "settled_failed", "finished_late"].contains(&line.happening.as_str());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(version: i64, attempt: i64, happening: &str, actor: &str) -> Line {
        Line {
            operation_id: "0198".into(),
            version,
            attempt,
            happening: happening.into(),
            actor: actor.into(),
        }
    }

    fn objections(history: &[Line]) -> Vec<String> {
        accepted(&[], history, &BTreeMap::new(), Profile::Usual)
    }

    #[test]
    fn nothing_is_wrong_with_doubt_that_is_settled_retried_and_finished_late() {
        let history = [
            line(2, 1, "doubted", "lease_watch"),
            line(3, 1, "settled_not_executed", "reconciler"),
            line(4, 2, "retried", "request"),
            line(6, 2, "doubted", "owner"),
            line(7, 2, "finished_late", "owner"),
            line(8, 2, "remarked", "reconciler"),
        ];
        assert_eq!(objections(&history), Vec::<String>::new());
    }

    #[test]
    fn writes_of_fenced_owners_are_noticed() {
        for history in [
            &[line(2, 1, "settled_not_executed", "reconciler"), line(3, 1, "failed_retryable", "owner")][..],
            &[
                line(2, 1, "failed_retryable", "owner"),
                line(3, 2, "retried", "request"),
                line(4, 1, "finished_late", "owner"),
            ],
            &[line(2, 1, "settled_completed", "reconciler"), line(3, 1, "finished_late", "owner")],
            &[line(2, 1, "doubted", "owner"), line(2, 1, "settled_completed", "reconciler")],
            &[line(2, 3, "retried", "request")],
        ] {
            assert_eq!(objections(history).len(), 1, "{history:?}");
        }
    }

    #[test]
    fn a_charge_by_another_attempt_than_the_records_is_noticed() {
        let kept = [Kept { operation_id: "0198".into(), attempt: 2, state: "completed".into() }];
        let charged = |attempts: &[i64]| [("0198".to_owned(), attempts.to_vec())].into();
        let objections = |attempts: &[i64], profile| accepted(&kept, &[], &charged(attempts), profile).len();
        for (attempts, usual, resumed) in [(&[2][..], 0, 0), (&[], 0, 0), (&[1], 1, 0), (&[3], 1, 1)] {
            assert_eq!(objections(attempts, Profile::Usual), usual, "{attempts:?}");
            assert_eq!(objections(attempts, Profile::Resume), resumed, "{attempts:?}");
        }
    }

    #[test]
    fn whatever_a_webhook_settles_by_a_key_is_noticed() {
        let told =
            |happening, actor| objections(&[line(2, 1, "doubted", "owner"), line(3, 1, happening, actor)]);
        assert_eq!(told("settled_completed", "webhook:provider"), Vec::<String>::new());
        assert_eq!(told("remarked", "webhook:campaign"), Vec::<String>::new());
        assert!(told("settled_completed", "webhook:campaign").iter().any(|words| words.starts_with("I13")));
    }
}
