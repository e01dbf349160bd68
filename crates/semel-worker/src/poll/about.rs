//! What the answer to a poll says of itself: which operation and attempt it is about, and its outcome.
//!
//! Anybody on the way can answer a poll: a proxy with its own 404, a cache with an answer to an earlier question, a wrong host. What
//! they say must not let a retry execute. So an absence has to repeat what was asked about, which none of them would.

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
/// It is no answer of somebody who knows the operation: it names no outcome.
pub(super) const NO_OUTCOME: Code = "poll_absence_without_outcome";
/// It does not say which operation it is about.
const NO_OPERATION: Code = "poll_absence_without_operation_id";
/// It does not say which attempt it is about.
const NO_ATTEMPT: Code = "poll_absence_without_attempt";
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

    /// Whether it may be about the attempt that was asked about.
    ///
    /// # Errors
    /// It names another one.
    pub(super) fn same_attempt(&self, question: &Question) -> Result<(), Code> {
        let asked = question.attempt.to_string();
        if self.attempt.is_none_or(|attempt| attempt == asked) { Ok(()) } else { Err(OTHER_ATTEMPT) }
    }

    /// Whether head and document together name the very operation and attempt that were asked about, and nothing else.
    ///
    /// # Errors
    /// What they do not name, or name otherwise.
    pub(super) fn names_both(&self, named: &Named, question: &Question) -> Result<(), Code> {
        self.same_operation(question)?;
        self.same_attempt(question)?;
        match &named.operation_id {
            Some(Value::String(id)) if names(id, question.operation_id) => {}
            Some(_) => return Err(OTHER_OPERATION),
            None if self.operation_id.is_none() => return Err(NO_OPERATION),
            None => {}
        }
        match &named.attempt {
            Some(attempt) if attempt.as_u64() == Some(question.attempt.into()) => Ok(()),
            Some(_) => Err(OTHER_ATTEMPT),
            None if self.attempt.is_none() => Err(NO_ATTEMPT),
            None => Ok(()),
        }
    }
}

/// What a document says that it is about. Services have members of their own by these names, so it is looked at only where an absence
/// has to name it.
#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) operation_id: Option<Value>,
    pub(super) attempt: Option<Value>,
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
