//! Whether the history of one key could have come from a memory that does one thing at a time: stateright's checker of
//! linearizability, on what the clients saw.

use crate::log::{Answer, Meaning, Told};
use crate::plan::Variant;
use stateright::semantics::{ConsistencyTester as _, LinearizabilityTester, SequentialSpec};
use std::time::Duration;

/// A key, as it is promised: one body has one answer for ever, and every other body is told so. Until there is an answer, a claim may
/// be taken back under which nothing ran, so that another body can come to its turn.
#[derive(Clone, Default, Debug)]
struct Key {
    /// Bodies that may hold the key, as long as there is no answer.
    claims: Vec<Variant>,
    answer: Option<(Variant, Answered)>,
    /// Whose window is over.
    expired: Option<Variant>,
    /// Whether a window that is over makes the key new.
    renews: bool,
    /// Answers of operations whose windows are over.
    past: Vec<(Variant, Answered)>,
}

/// What retries get again.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Answered {
    status: u16,
    operation_id: Option<String>,
    body: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Heard {
    Answer(Answered),
    Mismatch,
    Expired,
}

impl SequentialSpec for Key {
    type Op = Variant;
    type Ret = Heard;

    /// For requests whose answer nobody heard: whatever it was, they may have claimed the key.
    fn invoke(&mut self, variant: &Variant) -> Heard {
        self.claims.push(*variant);
        self.answer.clone().map_or(Heard::Mismatch, |(_, answer)| Heard::Answer(answer))
    }

    fn is_valid_step(&mut self, variant: &Variant, heard: &Heard) -> bool {
        if let Some(owner) = self.expired {
            return match heard {
                Heard::Answer(_) => false,
                Heard::Mismatch => owner != *variant,
                Heard::Expired => owner == *variant,
            };
        }
        match (heard, &self.answer) {
            (Heard::Expired, _) if self.renews => false,
            (Heard::Mismatch, _) if self.renews && self.claims.iter().any(|claim| claim != variant) => true,
            (Heard::Answer(answer), Some(known)) if self.renews && *known != (*variant, answer.clone()) => {
                self.past.extend(self.answer.replace((*variant, answer.clone())));
                self.answer.as_ref().is_some_and(|answer| !self.past.contains(answer))
            }
            (Heard::Expired, known) => {
                self.expired = Some(*variant);
                known.as_ref().map_or_else(|| self.claims.contains(variant), |(owner, _)| owner == variant)
            }
            (Heard::Mismatch, Some((owner, _))) => owner != variant,
            (Heard::Mismatch, None) => self.claims.iter().any(|claim| claim != variant),
            (Heard::Answer(answer), Some(known)) => *known == (*variant, answer.clone()),
            (Heard::Answer(answer), None) => {
                self.answer = Some((*variant, answer.clone()));
                true
            }
        }
    }
}

/// Whether what was told about one key, by requests of these variants, is linearizable. `renews`: a window that is over makes the key new.
pub(crate) fn is_linearizable(told: &[&Told], renews: bool) -> bool {
    // A request without an answer that stays may have had its effect at any time after it was sent, or none. The first of a body
    // can do all that a later one can.
    let unheard = |variant: Variant| {
        let of_variant = told.iter().filter(move |told| told.variant == variant && heard(told).is_none());
        of_variant.min_by_key(|told| told.sent)
    };
    let firsts = [Variant::Plain, Variant::Altered, Variant::Neighbour].into_iter().filter_map(unheard);
    let known = told.iter().filter(|told| heard(told).is_some());
    let history: Vec<&Told> = known.chain(firsts).copied().collect();
    let mut events: Vec<(Duration, bool, usize)> = Vec::new();
    for (number, told) in history.iter().enumerate() {
        events.push((told.sent, false, number));
        if heard(told).is_some() {
            events.push((told.heard, true, number));
        }
    }
    // At the same moment: sent before heard, so that they count as concurrent.
    events.sort_unstable();
    let mut tester = LinearizabilityTester::new(Key { renews, ..Key::default() });
    for (_, is_return, number) in events {
        let told = history[number];
        let noted = match heard(told) {
            Some(heard) if is_return => tester.on_return(number, heard).map(drop),
            _ => tester.on_invoke(number, told.variant).map(drop),
        };
        if noted.is_err() {
            return false;
        }
    }
    tester.is_consistent()
}

/// What was heard, if it stays.
fn heard(told: &Told) -> Option<Heard> {
    let answer: &Answer = told.answer.as_ref()?;
    match answer.meaning() {
        Meaning::Paid | Meaning::Declined => Some(Heard::Answer(Answered {
            status: answer.status,
            operation_id: answer.operation_id.clone(),
            body: answer.body.clone(),
        })),
        Meaning::Mismatch => Some(Heard::Mismatch),
        Meaning::Expired => Some(Heard::Expired),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variant: Variant, sent: u64, heard: u64, status: u16, body: &str) -> Told {
        let body = match status {
            201 => format!(r#"{{"reference":"{body}"}}"#),
            422 if body == "expired" => r#"{"code":"idempotency_key_expired"}"#.into(),
            422 => r#"{"code":"idempotency_key_reused_with_different_payload"}"#.into(),
            _ => r#"{"code":"idempotency_key_in_progress"}"#.into(),
        };
        let answer =
            Answer { status, replayed: false, content_type: String::new(), operation_id: None, body };
        let (sent, heard) = (Duration::from_millis(sent), Duration::from_millis(heard));
        Told { operation: 0, variant, sent, heard, answer: Some(answer) }
    }

    fn check(history: &[Told]) -> bool {
        is_linearizable(&history.iter().collect::<Vec<_>>(), false)
    }

    fn check_renewed(history: &[Told]) -> bool {
        is_linearizable(&history.iter().collect::<Vec<_>>(), true)
    }

    #[test]
    fn a_key_that_is_new_again_has_another_answer_and_never_the_old_one() {
        let paid = |variant, sent, body| told(variant, sent, sent + 5, 201, body);
        let (first, second) = (paid(Variant::Plain, 0, "a"), paid(Variant::Plain, 20, "b"));
        assert!(!check(&[first.clone(), second.clone()]));
        assert!(check_renewed(&[first.clone(), paid(Variant::Plain, 10, "a"), second.clone()]));
        assert!(check_renewed(&[
            first.clone(),
            paid(Variant::Altered, 20, "b"),
            told(Variant::Plain, 30, 40, 422, "")
        ]));
        assert!(!check_renewed(&[first.clone(), second, paid(Variant::Plain, 30, "a")]), "it was over");
        assert!(
            !check_renewed(&[first.clone(), told(Variant::Plain, 10, 15, 422, "expired")]),
            "nothing is refused"
        );
        assert!(
            !check_renewed(&[first, told(Variant::Plain, 10, 15, 422, "")]),
            "there was nobody to differ from"
        );
    }

    #[test]
    fn retries_and_mismatches_in_any_overlap_are() {
        assert!(check(&[
            told(Variant::Plain, 0, 50, 201, "a"),
            told(Variant::Plain, 10, 40, 201, "a"),
            told(Variant::Altered, 5, 20, 422, ""),
            told(Variant::Plain, 60, 70, 201, "a"),
        ]));
    }

    #[test]
    fn a_mismatch_may_be_due_to_a_request_that_nobody_heard_of_again() {
        assert!(check(&[told(Variant::Plain, 0, 50, 409, ""), told(Variant::Altered, 5, 20, 422, "")]));
        assert!(!check(&[told(Variant::Altered, 5, 20, 422, "")]), "there was nobody to differ from");
        assert!(!check(&[told(Variant::Plain, 30, 50, 409, ""), told(Variant::Altered, 5, 20, 422, "")]));
    }

    #[test]
    fn a_window_that_is_over_stays_over() {
        let paid = |sent| told(Variant::Plain, sent, sent + 5, 201, "a");
        let expired = |variant, sent| told(variant, sent, sent + 5, 422, "expired");
        assert!(check(&[paid(0), expired(Variant::Plain, 10), expired(Variant::Plain, 20)]));
        assert!(check(&[told(Variant::Plain, 0, 5, 409, ""), expired(Variant::Plain, 10)]));
        assert!(!check(&[paid(0), expired(Variant::Plain, 10), paid(20)]));
        assert!(!check(&[paid(0), expired(Variant::Altered, 10)]), "it is another body's");
        assert!(!check(&[expired(Variant::Plain, 10)]), "there was nothing that could expire");
    }

    #[test]
    fn two_answers_and_two_owners_are_not() {
        assert!(!check(&[told(Variant::Plain, 0, 50, 201, "a"), told(Variant::Plain, 10, 40, 201, "b")]));
        assert!(!check(&[told(Variant::Plain, 0, 50, 201, "a"), told(Variant::Altered, 10, 40, 201, "b")]));
    }

    #[test]
    fn a_claim_that_changes_hands_is_not() {
        assert!(!check(&[
            told(Variant::Plain, 0, 10, 201, "a"),
            told(Variant::Altered, 20, 30, 422, ""),
            told(Variant::Plain, 40, 50, 422, ""),
        ]));
    }
}
