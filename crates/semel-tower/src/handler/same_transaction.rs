//! Finishing an operation inside the handler, in a transaction that it shares with the domain.

use super::operation::{FinishedInside, Operation};
use super::reply::{Replayable, Reply};
use semel::transition::{Act, Refusal};
use semel::{Outcome, OutcomeWrites, Record, StoreError, StoredResponse, Ticket, Timestamp};
use std::convert::Infallible;

/// Why an operation was not completed in the handler's transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompleteError<E = Infallible> {
    /// The application's closure failed. Nothing was written, and the operation is not finished: the handler's answer decides.
    #[error("the application's work failed, and the transaction was rolled back")]
    Application(E),
    /// This attempt is not the owner any more. Nothing was written.
    #[error("another attempt took over, or the outcome was settled: {0:?}")]
    Refused(Refusal),
    /// The store failed. Nothing was written, and the operation is not finished: the handler's answer decides.
    #[error(transparent)]
    Store(StoreError),
    /// It is unknown whether it was committed, and the client is answered so.
    #[error("the outcome of the commit is unknown")]
    Unknown,
    /// The operation was finished before.
    #[error("the operation is already finished")]
    Finished,
}

impl Operation {
    /// Takes the ticket to finish the operation with. Until [`Finishing`] says otherwise the outcome is unknown: a handler that
    /// stops waiting must not answer as if it were otherwise.
    pub(crate) fn finishing<E>(&self) -> Result<Finishing<'_>, CompleteError<E>> {
        let ticket = self.take_ticket().ok_or(CompleteError::Finished)?;
        self.slot().finished = Some(FinishedInside::Unknown);
        Ok(Finishing { operation: self, ticket })
    }

    /// What is stored of a reply.
    pub(crate) fn act(&self, reply: &Reply, writes: &OutcomeWrites) -> Act {
        let Reply { stored, resource, failed } = reply;
        let (response, resource) = (Some(self.kept(stored)), resource.clone());
        let outcome = if *failed {
            Outcome::Failed { response, resource }
        } else {
            Outcome::Completed { response, resource }
        };
        writes.act(outcome)
    }
}

/// An operation on its way to be finished by a transaction of the handler's.
pub(crate) struct Finishing<'a> {
    operation: &'a Operation,
    pub(crate) ticket: Ticket,
}

impl Finishing<'_> {
    /// The transaction has committed.
    pub(crate) fn committed(self, stored: StoredResponse, record: Option<&Record>) -> Replayable {
        self.ticket.committed_elsewhere(record);
        committed(self.operation, stored, record.and_then(|record| record.times.expires))
    }

    /// The answer to the commit was lost: finds out whether it is there.
    pub(crate) async fn lost<E>(self) -> Result<Replayable, CompleteError<E>> {
        let found = self.ticket.commit_lost().await;
        let found = found.and_then(|record| Some((record.response?, record.times.expires)));
        let (stored, expires) = found.ok_or(CompleteError::Unknown)?;
        Ok(committed(self.operation, stored, expires))
    }

    /// Nothing was written: the handler's answer decides.
    pub(crate) fn not_written<E>(self, why: CompleteError<E>) -> CompleteError<E> {
        let mut slot = self.operation.slot();
        slot.ticket = Some(self.ticket);
        slot.finished = None;
        why
    }
}

fn committed(operation: &Operation, stored: StoredResponse, expires: Option<Timestamp>) -> Replayable {
    operation.slot().finished = Some(FinishedInside::Committed(stored.clone(), expires));
    Replayable(stored)
}

/// A handler that returns the error with `?` answers rightly: the application's own error as it is, and 503 where the store failed, with
/// `Semel-Outcome: retryable`, so that a retry executes. In all other cases the layer answers by itself.
///
/// That word is about this transaction. A handler that did something else before it has to map the error itself.
#[cfg(feature = "axum")]
impl<E: axum_core::response::IntoResponse> axum_core::response::IntoResponse for CompleteError<E> {
    fn into_response(self) -> axum_core::response::Response {
        use http::StatusCode;
        match self {
            Self::Application(error) => error.into_response(),
            Self::Store(error) => {
                tracing::error!(%error, "the transaction was rolled back");
                (StatusCode::SERVICE_UNAVAILABLE, [(crate::OUTCOME, "retryable")]).into_response()
            }
            Self::Refused(_) | Self::Unknown | Self::Finished => StatusCode::GATEWAY_TIMEOUT.into_response(),
        }
    }
}
