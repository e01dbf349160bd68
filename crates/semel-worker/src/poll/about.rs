//! What the answer to a poll says of itself: which operation and attempt it is about, and its outcome.
//!
//! Other parties on the way can answer a poll: a proxy with its own 404, a cache with an answer to an earlier question, a wrong host. What
//! they say must not let a retry execute. So an absence has to repeat what was asked about, which none of them would.

use crate::document::SaidOutcome;
use crate::reconcile::Question;
use http::header::AGE;
use http::{HeaderMap, HeaderName};
use semel::OperationId;
use semel_tower::{ATTEMPT, OPERATION_ID, OUTCOME};
use serde_json::Value;

/// Why an answer proves nothing, as the log and the history spell it.
pub(super) type Code = &'static str;

/// It comes from a cache.
pub(super) const CACHED: Code = "poll_cached";
/// It is about another operation.
const OTHER_OPERATION: Code = "poll_other_operation";
/// It is about another attempt.
const OTHER_ATTEMPT: Code = "poll_other_attempt";
/// It names no outcome, so it does not come from a service that knows the operation.
pub(super) const NO_OUTCOME: Code = "poll_absence_without_outcome";
/// What an absence and a refusal are said not to name: the operation that they are about, and the attempt.
const OF_ABSENCE: [Code; 2] = ["poll_absence_without_operation_id", "poll_absence_without_attempt"];
const OF_REFUSAL: [Code; 2] = ["poll_refusal_without_operation_id", "poll_refusal_without_attempt"];
/// It says two things at once.
pub(super) const CONTRADICTION: Code = "poll_contradiction";

/// What the fields of an answer's head say.
#[derive(Debug, Default)]
pub(super) struct Head<'a> {
    operation_id: Option<&'a str>,
    attempt: Option<&'a str>,
    /// The outcome, by its name.
    pub(super) outcome: Option<&'a str>,
}

impl<'a> Head<'a> {
    /// # Errors
    /// It comes from a cache, or gives a field twice or in other than visible characters.
    pub(super) fn read(headers: &'a HeaderMap) -> Result<Self, Code> {
        // A cache adds it to what it has kept, however short a time.
        if headers.contains_key(AGE) {
            return Err(CACHED);
        }
        let (operation_id, attempt) = (only(headers, &OPERATION_ID)?, only(headers, &ATTEMPT)?);
        Ok(Self { operation_id, attempt, outcome: only(headers, &OUTCOME)? })
    }

    /// Whether it may be about the operation that was asked about.
    ///
    /// # Errors
    /// It names another one.
    pub(super) fn same_operation(&self, question: &Question) -> Result<(), Code> {
        let same = self.operation_id.is_none_or(|id| names(id, question.operation_id));
        if same { Ok(()) } else { Err(OTHER_OPERATION) }
    }

    /// Whether head and document together name the very operation and attempt that were asked about, and nothing else. What happened at
    /// one attempt is true of the operation; what did not, or was refused, says nothing of another attempt.
    ///
    /// # Errors
    /// What they do not name, or name otherwise.
    pub(super) fn names_both(
        &self,
        named: &Named,
        outcome: SaidOutcome,
        question: &Question,
    ) -> Result<(), Code> {
        let [no_operation, no_attempt] = if outcome == SaidOutcome::Failed { OF_REFUSAL } else { OF_ABSENCE };
        self.same_operation(question)?;
        let asked = question.attempt.to_string();
        if self.attempt.is_some_and(|attempt| attempt != asked) {
            return Err(OTHER_ATTEMPT);
        }
        named.same_operation(question)?;
        if named.operation_id.is_none() && self.operation_id.is_none() {
            return Err(no_operation);
        }
        match &named.attempt {
            Some(attempt) if attempt.as_u64() == Some(question.attempt.into()) => Ok(()),
            Some(_) => Err(OTHER_ATTEMPT),
            None if self.attempt.is_none() => Err(no_attempt),
            None => Ok(()),
        }
    }
}

/// What a document that names an outcome says that it is about. In the short form, which is the response itself, members by these names are
/// the service's own, and nothing is named.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) operation_id: Option<Value>,
    pub(super) attempt: Option<Value>,
}

impl Named {
    /// Whether it may be about the operation that was asked about.
    ///
    /// # Errors
    /// It names another one.
    pub(super) fn same_operation(&self, question: &Question) -> Result<(), Code> {
        match &self.operation_id {
            Some(Value::String(id)) if names(id, question.operation_id) => Ok(()),
            Some(_) => Err(OTHER_OPERATION),
            None => Ok(()),
        }
    }
}

fn names(text: &str, id: OperationId) -> bool {
    text.parse() == Ok(id)
}

/// The value of a field that is there once, or not at all.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Code> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(|value| Some(value.trim())).map_err(|_| CONTRADICTION),
        (Some(_), Some(_)) => Err(CONTRADICTION),
    }
}
