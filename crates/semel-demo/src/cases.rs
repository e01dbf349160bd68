//! The cases: what each one shows, and whether what was seen is what was promised. Nothing is sent here, so that the judge can be
//! tested with answers that are wrong.

use super::client::Answer;
use http::StatusCode;

/// One case of the walk.
pub(super) struct Case {
    pub(super) title: &'static str,
    /// What it shows, if it comes out right.
    pub(super) shows: &'static str,
    judge: fn(&Seen, &mut Faults),
}

/// What was seen in a case.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The answers, in the order in which they came.
    pub(super) answers: Vec<Answer>,
    /// How many charges were in the provider's ledger before, and are now.
    pub(super) charges: (u64, u64),
}

impl Case {
    /// What is wrong with what was seen; nothing if it is as promised.
    pub(super) fn judge(&self, seen: &Seen) -> Vec<String> {
        let mut faults = Faults::default();
        (self.judge)(seen, &mut faults);
        faults.0
    }
}

pub(super) const FIRST: Case = Case {
    title: "A first request",
    shows: "The service charged. The gateway stored its answer before passing it on.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        if let Some([first]) = faults.answers(seen) {
            faults.unless_executed(first, StatusCode::CREATED);
        }
    },
};

pub(super) const REPLAY: Case = Case {
    title: "The same request again",
    shows: "A retry gets the first answer byte for byte, marked as a replay. No charge.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(0, seen);
        if let Some([first, retry]) = faults.answers(seen) {
            faults.unless_replay(retry, first);
        }
    },
};

/// How many requests race.
pub(super) const RACERS: usize = 50;

pub(super) const RACE: Case = Case {
    title: "50 at once",
    shows: "One executes. The others get 409 at once, with Retry-After.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        let (done, told): (Vec<_>, Vec<_>) =
            seen.answers.iter().partition(|answer| answer.status == StatusCode::CREATED);
        faults.unless(done.len() == 1, || format!("{} of the racers got 201, not one", done.len()));
        faults.unless(done.len() + told.len() == RACERS, || {
            format!("{} of {RACERS} racers were answered", seen.answers.len())
        });
        let astray = told.iter().filter(|answer| !is_in_progress(answer)).count();
        faults.unless(astray == 0, || {
            format!(
                "{astray} of the racers got neither 201 nor 409 idempotency_key_in_progress with Retry-After"
            )
        });
    },
};

pub(super) const REUSED: Case = Case {
    title: "The same key for another amount",
    shows: "One key never stands for two requests. The service was not asked.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(0, seen);
        if let Some([refused]) = faults.answers(seen) {
            faults.unless_problem(
                refused,
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency_key_reused_with_different_payload",
            );
        }
    },
};

pub(super) const MISSING: Case = Case {
    title: "No key",
    shows: "Where a key is required, nothing is executed without one.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(0, seen);
        if let Some([refused]) = faults.answers(seen) {
            faults.unless_problem(refused, StatusCode::BAD_REQUEST, "idempotency_key_missing");
        }
    },
};

pub(super) const TENANTS: Case = Case {
    title: "The same key from another account",
    shows: "A key belongs to its account. No account sees another's answer.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        if let Some([theirs, ours]) = faults.answers(seen) {
            faults.unless_executed(ours, StatusCode::CREATED);
            faults
                .unless(theirs.member("id") != ours.member("id"), || "both accounts got one payment".into());
        }
    },
};

pub(super) const DECLINED: Case = Case {
    title: "A card that is declined",
    shows: "A refusal is an outcome too: the retry gets it, and nothing is executed.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(0, seen);
        if let Some([first, retry]) = faults.answers(seen) {
            faults.unless_status(first, StatusCode::PAYMENT_REQUIRED);
            faults.unless_replay(retry, first);
        }
    },
};

pub(super) const HANG_UP: Case = Case {
    title: "A client that disconnects",
    shows: "The work goes on without the client, and the retry gets its answer.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        if let Some([retry]) = faults.answers(seen) {
            faults.unless_status(retry, StatusCode::CREATED);
            faults.unless(retry.replayed, || "the retry was executed, and not replayed".into());
        }
    },
};

pub(super) const SILENT: Case = Case {
    title: "A provider that charges and disconnects",
    shows: "The outcome was unknown until evidence settled it. One charge.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        if let Some([first, retry, settled]) = faults.answers(seen) {
            faults.unless_unknown(first, retry);
            faults.unless_status(settled, StatusCode::CREATED);
            faults.unless(settled.replayed, || "what was settled is not marked as a replay".into());
        }
    },
};

pub(super) const KILLED: Case = Case {
    title: "A service that is killed",
    shows: "It was killed after the charge. No retry makes a second one.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        if let Some([first, retry]) = faults.answers(seen) {
            faults.unless_unknown(first, retry);
        }
    },
};

pub(super) const NOT_RUNNING: Case = Case {
    title: "A service that is not running",
    shows: "Nothing was sent for certain, so a retry executes.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(1, seen);
        if let Some([refused, retry]) = faults.answers(seen) {
            faults.unless_problem(refused, StatusCode::BAD_GATEWAY, "idempotency_upstream_unreachable");
            faults.unless(refused.is_retryable(), || "the refusal does not say that it is retryable".into());
            faults.unless_executed(retry, StatusCode::CREATED);
        }
    },
};

pub(super) const GATEWAY_KILLED: Case = Case {
    title: "A gateway that is killed",
    shows: "Outcomes are on disk before the client gets them. A restart loses none.",
    judge: |seen, faults| {
        faults.unless_charges_grew_by(0, seen);
        if let Some([first, retry, doubted]) = faults.answers(seen) {
            faults.unless_replay(retry, first);
            faults.unless_problem(doubted, StatusCode::CONFLICT, UNKNOWN);
        }
    },
};

/// The code of what nobody knows.
pub(super) const UNKNOWN: &str = "idempotency_outcome_unknown";

/// What was wrong, in words.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn unless(&mut self, right: bool, fault: impl FnOnce() -> String) {
        if !right {
            self.0.push(fault());
        }
    }

    /// The answers, if there are as many as the case has.
    fn answers<'s, const N: usize>(&mut self, seen: &'s Seen) -> Option<&'s [Answer; N]> {
        let answers = seen.answers.as_slice().try_into().ok();
        self.unless(answers.is_some(), || format!("{} answers instead of {N}", seen.answers.len()));
        answers
    }

    fn unless_charges_grew_by(&mut self, by: u64, seen: &Seen) {
        let (before, after) = seen.charges;
        self.unless(before + by == after, || {
            format!("there are {after} charges, and there should be {}", before + by)
        });
    }

    fn unless_status(&mut self, answer: &Answer, status: StatusCode) {
        self.unless(answer.status == status, || format!("{} instead of {}", words(answer), status.as_u16()));
    }

    fn unless_executed(&mut self, answer: &Answer, status: StatusCode) {
        self.unless_status(answer, status);
        self.unless(!answer.replayed, || "the answer is marked as a replay".into());
        self.unless(answer.member("id").is_some(), || "the answer names no payment".into());
    }

    fn unless_replay(&mut self, retry: &Answer, first: &Answer) {
        self.unless_status(retry, first.status);
        self.unless(retry.replayed, || "the answer is not marked as a replay".into());
        self.unless(retry.body == first.body, || "the bytes are not those of the first answer".into());
    }

    /// The first request is told that the outcome is unknown, and so is its retry.
    fn unless_unknown(&mut self, first: &Answer, retry: &Answer) {
        self.unless_problem(first, StatusCode::GATEWAY_TIMEOUT, UNKNOWN);
        self.unless_problem(retry, StatusCode::CONFLICT, UNKNOWN);
    }

    fn unless_problem(&mut self, answer: &Answer, status: StatusCode, code: &str) {
        let right = answer.status == status && answer.code().as_deref() == Some(code);
        self.unless(right, || format!("{} instead of {} {code}", words(answer), status.as_u16()));
    }
}

pub(super) fn is_in_progress(answer: &Answer) -> bool {
    answer.status == StatusCode::CONFLICT
        && answer.code().as_deref() == Some("idempotency_key_in_progress")
        && answer.retry_after.is_some()
}

fn words(answer: &Answer) -> String {
    let code = answer.code().map(|code| format!(" {code}")).unwrap_or_default();
    format!("{}{code}", answer.status.as_u16())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn answer(status: u16, body: &'static str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            replayed: false,
            retry_after: None,
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    fn paid() -> Answer {
        answer(201, r#"{"id":"pay_1"}"#)
    }

    fn replayed(answer: Answer) -> Answer {
        Answer { replayed: true, ..answer }
    }

    fn in_progress() -> Answer {
        Answer { retry_after: Some("1".into()), ..answer(409, r#"{"code":"idempotency_key_in_progress"}"#) }
    }

    fn unknown(status: u16) -> Answer {
        answer(status, r#"{"code":"idempotency_outcome_unknown"}"#)
    }

    fn declined() -> Answer {
        answer(402, r#"{"code":"card_declined"}"#)
    }

    fn unreachable() -> Answer {
        answer(502, r#"{"code":"idempotency_upstream_unreachable","retryable":true}"#)
    }

    fn race() -> Vec<Answer> {
        std::iter::once(paid()).chain(std::iter::repeat_with(in_progress).take(RACERS - 1)).collect()
    }

    /// Every case as it should be: its answers, and by how much charges grow.
    fn as_promised() -> Vec<(&'static Case, Vec<Answer>, u64)> {
        let reused = answer(422, r#"{"code":"idempotency_key_reused_with_different_payload"}"#);
        vec![
            (&FIRST, vec![paid()], 1),
            (&REPLAY, vec![paid(), replayed(paid())], 0),
            (&RACE, race(), 1),
            (&REUSED, vec![reused], 0),
            (&MISSING, vec![answer(400, r#"{"code":"idempotency_key_missing"}"#)], 0),
            (&TENANTS, vec![paid(), answer(201, r#"{"id":"pay_2"}"#)], 1),
            (&DECLINED, vec![declined(), replayed(declined())], 0),
            (&HANG_UP, vec![replayed(paid())], 1),
            (&SILENT, vec![unknown(504), unknown(409), replayed(paid())], 1),
            (&KILLED, vec![unknown(504), unknown(409)], 1),
            (&NOT_RUNNING, vec![unreachable(), paid()], 1),
            (&GATEWAY_KILLED, vec![paid(), replayed(paid()), unknown(409)], 0),
        ]
    }

    fn faults(case: &Case, answers: Vec<Answer>, grown: u64) -> Vec<String> {
        case.judge(&Seen { answers, charges: (7, 7 + grown) })
    }

    #[test]
    fn what_is_as_promised_has_no_faults() {
        for (case, answers, grown) in as_promised() {
            assert_eq!(faults(case, answers, grown), Vec::<String>::new(), "{}", case.title);
        }
    }

    #[test]
    fn a_charge_too_many_or_too_few_is_a_fault_in_every_case() {
        for (case, answers, grown) in as_promised() {
            assert!(!faults(case, answers.clone(), grown + 1).is_empty(), "{}", case.title);
            if grown > 0 {
                assert!(!faults(case, answers, grown - 1).is_empty(), "{}", case.title);
            }
        }
    }

    #[test]
    fn an_answer_too_many_or_too_few_is_a_fault_in_every_case() {
        for (case, mut answers, grown) in as_promised() {
            answers.push(answers[answers.len() - 1].clone());
            assert!(!faults(case, answers.clone(), grown).is_empty(), "{}", case.title);
            answers.truncate(answers.len() - 2);
            assert!(!faults(case, answers, grown).is_empty(), "{}", case.title);
        }
    }

    #[test]
    fn a_last_answer_of_another_kind_is_a_fault_in_every_case() {
        let wrong = [
            answer(500, ""),
            answer(201, r#"{"id":"pay_1"}"#),
            replayed(answer(201, r#"{"id":"pay_9"}"#)),
            replayed(answer(200, r#"{"id":"pay_1"}"#)),
            answer(409, r#"{"code":"idempotency_key_in_progress"}"#),
            answer(503, r#"{"code":"idempotency_store_unavailable"}"#),
        ];
        for (case, right, grown) in as_promised() {
            let caught = wrong.iter().filter(|wrong| {
                let mut answers = right.clone();
                answers.pop();
                answers.push((*wrong).clone());
                !faults(case, answers, grown).is_empty()
            });
            // The one that may pass is the case's own right answer.
            assert!(caught.count() >= wrong.len() - 1, "{}", case.title);
        }
    }

    #[test]
    fn a_replay_must_be_marked_and_equal() {
        assert!(!faults(&REPLAY, vec![paid(), paid()], 0).is_empty());
        let other_bytes = replayed(answer(201, r#"{"id": "pay_1"}"#));
        assert!(!faults(&REPLAY, vec![paid(), other_bytes], 0).is_empty());
    }

    #[test]
    fn a_race_has_one_winner() {
        let mut two = race();
        two[1] = paid();
        assert!(!faults(&RACE, two, 1).is_empty());
        assert!(!faults(&RACE, vec![in_progress(); RACERS], 1).is_empty());
    }

    #[test]
    fn accounts_that_share_a_payment_are_a_fault() {
        assert!(!faults(&TENANTS, vec![paid(), paid()], 1).is_empty());
    }

    #[test]
    fn a_doubt_that_is_executed_again_is_a_fault() {
        assert!(!faults(&KILLED, vec![unknown(504), paid()], 2).is_empty());
        assert!(!faults(&KILLED, vec![unknown(504), paid()], 1).is_empty());
        assert!(!faults(&KILLED, vec![unreachable(), unknown(409)], 1).is_empty());
        assert!(!faults(&SILENT, vec![answer(504, "{}"), paid()], 2).is_empty());
    }

    #[test]
    fn a_refusal_that_may_not_be_retried_is_a_fault_where_nothing_was_sent() {
        let mute = answer(502, r#"{"code":"idempotency_upstream_unreachable"}"#);
        assert!(!faults(&NOT_RUNNING, vec![mute, paid()], 1).is_empty());
    }
}
