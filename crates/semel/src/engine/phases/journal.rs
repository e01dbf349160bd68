//! What an operation's phases have come to, as its recovery point and checkpoint tell it.

use super::OutOfStep;
use crate::engine::outcome_writes::OutcomeWrites;
use crate::record::Record;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The checkpoint of an operation that is built of phases.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Journal {
    /// The phases that are done, in their order, each with what it came to.
    phases: Vec<(String, Value)>,
    /// The foreign phase whose call was about to be made, or was made, and has no answer yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sent: Option<String>,
}

/// Where a phase stands.
#[derive(PartialEq, Debug)]
pub(super) enum Standing {
    /// It has not begun.
    New,
    /// An earlier attempt may have made its call.
    Sent,
    /// It is done, and came to this.
    Done(Value),
}

impl Journal {
    /// The journal that `record` keeps; empty before the first recovery point.
    pub(super) fn of(record: &Record, writes: &OutcomeWrites) -> Result<Self, OutOfStep> {
        if record.recovery_point.is_none() {
            return Ok(Self::default());
        }
        let checkpoint = writes.checkpoint_of(record).map_err(OutOfStep::Damaged)?;
        serde_json::from_slice(checkpoint.as_deref().unwrap_or_default()).map_err(OutOfStep::Unreadable)
    }

    /// Where the phase `name` stands. `Err`: a call of another phase has no answer yet, and nothing may be done before it has.
    pub(super) fn standing(&self, name: &str) -> Result<Standing, &str> {
        if let Some((_, value)) = self.phases.iter().find(|(done, _)| done == name) {
            return Ok(Standing::Done(value.clone()));
        }
        match self.sent.as_deref() {
            None => Ok(Standing::New),
            Some(sent) if sent == name => Ok(Standing::Sent),
            Some(sent) => Err(sent),
        }
    }

    pub(super) fn sending(&self, name: &str) -> Self {
        Self { sent: Some(name.to_owned()), ..self.clone() }
    }

    pub(super) fn done(&self, name: &str, value: Value) -> Self {
        let mut phases = self.phases.clone();
        phases.push((name.to_owned(), value));
        Self { phases, sent: None }
    }

    /// The recovery point's name, for people: the phase that is done, or the one that is sent.
    pub(super) fn point(&self) -> String {
        match (&self.sent, self.phases.last()) {
            (Some(sent), _) => format!("{sent}:sent"),
            (None, Some((done, _))) => done.clone(),
            (None, None) => String::new(),
        }
    }

    pub(super) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_journal_tells_of_each_phase_where_it_stands() {
        let created = Journal::default().done("created", json!("pay_1"));
        assert_eq!(created.point(), "created");
        assert_eq!(created.standing("charged"), Ok(Standing::New));
        let sent = created.sending("charged");
        assert_eq!(sent.point(), "charged:sent");
        assert_eq!(sent.standing("created"), Ok(Standing::Done(json!("pay_1"))));
        assert_eq!(sent.standing("charged"), Ok(Standing::Sent));
        assert_eq!(sent.standing("receipt"), Err("charged"), "nothing before the call has an answer");
        let charged = sent.done("charged", json!({ "id": "ch_1" }));
        assert_eq!(charged.point(), "charged");
        assert_eq!(charged.standing("charged"), Ok(Standing::Done(json!({ "id": "ch_1" }))));
        assert_eq!(charged.standing("receipt"), Ok(Standing::New));
    }

    #[test]
    fn a_journal_is_read_back_as_it_was_written() {
        let journal = Journal::default().done("created", json!(null)).sending("charged");
        let bytes = journal.encode().unwrap_or_default();
        assert_eq!(serde_json::from_slice::<Journal>(&bytes).ok(), Some(journal));
    }
}
