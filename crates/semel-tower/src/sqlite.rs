//! Domain rows and completion in one SQLite commit.

use crate::operation::{FinishedInside, Operation};
use crate::reply::{Replayable, Reply};
use semel::transition::Refusal;
use semel::{Finish, Outcome, Store as _, StoreError, StoredResponse, Ticket};
use semel_sqlite::{SqliteStore, Transaction, TransactionError};

/// Why an operation was not completed in the handler's transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompleteError<E> {
    /// The application's closure failed. Nothing was written, and the operation is not finished: the handler's answer decides.
    #[error("the application gave the transaction up")]
    Application(E),
    /// This attempt is not the owner any more. Nothing was written.
    #[error("another attempt took over, or the outcome was settled: {0:?}")]
    Refused(Refusal),
    /// The store failed. Nothing was written, and the operation is not finished: the handler's answer decides.
    #[error(transparent)]
    Store(StoreError),
    /// Nobody can say whether it was committed. The outcome is unknown, and that is what the client is told.
    #[error("it is not known whether the transaction was committed")]
    Unknown,
    /// The operation was finished before.
    #[error("the operation was finished before")]
    Finished,
}

impl Operation {
    /// Runs the handler's statements and completes the operation in one commit: payment, event and the answer that retries will get
    /// are there together, or none of them is.
    ///
    /// `work` runs on the store's writer thread and must not wait for anything but the file.
    ///
    /// # Errors
    /// Nothing was committed, or (with [`CompleteError::Unknown`]) nobody knows.
    pub async fn complete_in<E: Send + 'static>(
        &self,
        store: &SqliteStore,
        work: impl FnOnce(&Transaction<'_>) -> Result<Reply, E> + Send + 'static,
    ) -> Result<Replayable, CompleteError<E>> {
        let ticket = self.take_ticket().ok_or(CompleteError::Finished)?;
        // Until it is known: a handler that stops waiting must not answer as if it were.
        self.slot().finished = Some(FinishedInside::Unknown);
        let (policy, operation) = (ticket.policy().clone(), self.clone());
        let committed = store
            .finish_with(ticket.claim(), move |transaction| {
                let Reply { stored, resource, failed } = work(transaction)?;
                let response = Some(operation.kept(&stored));
                let outcome = if failed {
                    Outcome::Failed { response, resource }
                } else {
                    Outcome::Completed { response, resource }
                };
                Ok((stored, outcome.into_act(&policy)))
            })
            .await;
        match committed {
            Ok((stored, _record)) => {
                ticket.committed_elsewhere();
                Ok(self.committed(stored))
            }
            Err(TransactionError::Store(StoreError::Lost(_))) => self.find_out(store, ticket).await,
            Err(error) => {
                let mut slot = self.slot();
                slot.ticket = Some(ticket);
                slot.finished = None;
                drop(slot);
                Err(match error {
                    TransactionError::Application(error) => CompleteError::Application(error),
                    TransactionError::Refused(refusal) => CompleteError::Refused(refusal),
                    TransactionError::Store(error) => CompleteError::Store(error),
                    // A closure that panicked is rolled back: as with a store that failed, nothing was written.
                    error => CompleteError::Store(StoreError::Unavailable(error.to_string())),
                })
            }
        }
    }

    fn committed(&self, stored: StoredResponse) -> Replayable {
        self.slot().finished = Some(FinishedInside::Committed(stored.clone()));
        Replayable(stored)
    }

    /// The answer to the commit was lost. Calling the outcome unknown is refused if our completion is there after all.
    async fn find_out<E>(&self, store: &SqliteStore, ticket: Ticket) -> Result<Replayable, CompleteError<E>> {
        let doubted = ticket.finish(Outcome::Unknown { error: "commit_lost".into() }).await;
        if let Ok(Finish::Stored) = doubted
            && let Ok(answer) = store.find(vec![self.id()]).await
            && let Some(stored) = answer.items.into_iter().flatten().find_map(|record| record.response)
        {
            return Ok(self.committed(stored));
        }
        Err(CompleteError::Unknown)
    }
}

/// A handler that returns the error with `?` answers rightly: the application's own error as it is, and 503 where the store failed, with
/// the word that nothing happened, so that a retry executes. For the rest the layer answers, whatever is said here.
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
