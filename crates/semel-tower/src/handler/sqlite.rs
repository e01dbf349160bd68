//! Domain rows and completion in one SQLite commit.

use super::operation::Operation;
use super::reply::{Replayable, Reply};
use super::same_transaction::CompleteError;
use semel::StoreError;
use semel_sqlite::{SqliteStore, Transaction, TransactionError};

impl Operation {
    /// Runs the handler's statements and completes the operation in one commit: payment, event and the answer that retries will get
    /// are there together, or none of them is.
    ///
    /// `work` runs on the store's writer thread and must not wait for anything but the file.
    ///
    /// # Errors
    /// Nothing was committed, or (with [`CompleteError::Unknown`]) that is unknown.
    pub async fn complete_with<E: Send + 'static>(
        &self,
        store: &SqliteStore,
        work: impl FnOnce(&Transaction<'_>) -> Result<Reply, E> + Send + 'static,
    ) -> Result<Replayable, CompleteError<E>> {
        let finishing = self.finishing()?;
        let (writes, operation) = (finishing.ticket.outcome_writes(), self.clone());
        let committed = store
            .finish_with(finishing.ticket.claim(), move |transaction| {
                let reply = work(transaction)?;
                let act = operation.act(&reply, &writes);
                Ok((reply.stored, act))
            })
            .await;
        match committed {
            Ok((stored, record)) => Ok(finishing.committed(stored, record.as_ref())),
            Err(TransactionError::Store(StoreError::Lost(_))) => finishing.lost().await,
            Err(error) => Err(finishing.not_written(match error {
                TransactionError::Application(error) => CompleteError::Application(error),
                TransactionError::Refused(refusal) => CompleteError::Refused(refusal),
                TransactionError::Store(error) => CompleteError::Store(error),
                // A closure that panicked is rolled back: as with a store that failed, nothing was written.
                error => CompleteError::Store(StoreError::Unavailable(error.to_string())),
            })),
        }
    }
}
