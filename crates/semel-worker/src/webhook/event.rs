//! What a webhook's body says.

use crate::document::{InvalidDocument, ResourceDocument, ResponseDocument, SaidOutcome, Unkeepable};
use semel::transition::Evidence;
use semel::{OperationId, RecordKey, Resource, StoreResponse};
use serde::Deserialize;

/// Members that are not known are passed over: senders add their own.
#[derive(Deserialize)]
pub(super) struct Event {
    operation_id: Option<String>,
    tenant: Option<String>,
    operation: Option<String>,
    key: Option<String>,
    /// The attempt that it is about. Without it, it settles nothing but that it happened.
    pub(super) attempt: Option<u32>,
    outcome: Option<String>,
    response: Option<ResponseDocument>,
    resource: Option<ResourceDocument>,
}

/// What an event is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Subject {
    Operation(OperationId),
    Key(RecordKey),
}

/// Why an event cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidEvent {
    #[error(
        "the body must be JSON: {{\"operation_id\": \"…\", \"outcome\": \"completed\" | \"failed\" | \"not_executed\", \
         \"response\": {{…}}}}: {0}"
    )]
    Json(#[from] serde_json::Error),
    #[error("`operation_id` is not a valid operation id")]
    OperationId,
    #[error("`tenant`, `operation` and `key` must be given together")]
    HalfAKey,
    #[error("`outcome` must be completed, failed or not_executed")]
    Outcome,
    #[error("`response` and `resource` are allowed with completed and failed only")]
    NothingToKeep,
    #[error("{0}")]
    Document(#[from] InvalidDocument),
}

impl Event {
    pub(super) fn from_json(body: &[u8]) -> Result<Self, InvalidEvent> {
        Ok(serde_json::from_slice(body)?)
    }

    /// It is about something else of the sender's, or about something else than an outcome.
    pub(super) fn says_nothing(&self) -> bool {
        let named = [&self.operation_id, &self.tenant, &self.operation, &self.key];
        self.outcome.is_none() || named.iter().all(|name| name.is_none())
    }

    /// What it is about.
    pub(super) fn subject(&self) -> Result<Subject, InvalidEvent> {
        if let Some(id) = &self.operation_id {
            return id.parse().map(Subject::Operation).map_err(|_| InvalidEvent::OperationId);
        }
        match (&self.tenant, &self.operation, &self.key) {
            (Some(tenant), Some(operation), Some(key)) => {
                let key = RecordKey::new(tenant.as_str(), operation.as_str(), key.as_str());
                Ok(Subject::Key(key))
            }
            _ => Err(InvalidEvent::HalfAKey),
        }
    }

    pub(super) fn outcome(&self) -> Result<SaidOutcome, InvalidEvent> {
        self.outcome.as_deref().and_then(SaidOutcome::from_name).ok_or(InvalidEvent::Outcome)
    }

    /// What it proves, reduced to what the operation's rules keep of an answer.
    ///
    /// That it did not happen counts as absence: the sender cannot know what an owner with a live lease is about to do.
    pub(super) fn evidence(self, keep: StoreResponse) -> Result<Evidence, InvalidEvent> {
        let outcome = self.outcome()?;
        let response = self.response.map(|given| given.stored(Unkeepable::Dropped)).transpose()?;
        let response = response.map(|given| keep.kept(given));
        let resource = self.resource.map(Resource::try_from).transpose()?;
        match outcome {
            SaidOutcome::Completed => Ok(Evidence::Completed { response, resource }),
            SaidOutcome::Failed => Ok(Evidence::Failed { response, resource }),
            SaidOutcome::NotExecuted if response.is_some() || resource.is_some() => {
                Err(InvalidEvent::NothingToKeep)
            }
            SaidOutcome::NotExecuted => Ok(Evidence::Absent),
        }
    }
}
