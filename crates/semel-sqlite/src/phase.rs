//! Local phases: domain rows and the recovery point in one commit.

use crate::error::TransactionError;
use crate::store::SqliteStore;
use crate::transaction::Transaction;
use semel::{Checkpoint, Entered, PhaseError, Phases, StoreError};

/// Why the closure of a phase gave its transaction up.
enum GivenUp<E> {
    Application(E),
    Kept(serde_json::Error),
}

impl SqliteStore {
    /// Runs `work` as the local phase `name`, unless an earlier attempt has: its domain rows and the recovery point are one commit.
    ///
    /// What it returns is kept with the operation, as JSON, and is what a later attempt gets without running it. It has to do
    /// nothing but its statements: outside calls belong into [`Phases::foreign`].
    ///
    /// # Errors
    /// Nothing was written, or (with [`StoreError::Lost`]) that is unknown; the next attempt resumes from what is there.
    pub async fn phase<T, E, F>(&self, phases: &mut Phases, name: &str, work: F) -> Result<T, PhaseError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Checkpoint + Send + 'static,
        E: Send + 'static,
    {
        let step = match phases.local(name)? {
            Entered::Done(value) => return Ok(value),
            Entered::Now(step) => step,
        };
        let committed = self
            .finish_with(step.claim(), move |transaction| {
                let value = work(transaction).map_err(GivenUp::Application)?;
                let act = step.act(&value).map_err(GivenUp::Kept)?;
                Ok((value, act))
            })
            .await;
        let error = match committed {
            Ok((value, record)) => {
                phases.committed(record.as_ref());
                return Ok(value);
            }
            Err(TransactionError::Application(given_up)) => {
                phases.rolled_back();
                return Err(match given_up {
                    GivenUp::Application(error) => PhaseError::Application(error),
                    GivenUp::Kept(error) => PhaseError::Kept(error),
                });
            }
            Err(TransactionError::Refused(refusal)) => {
                phases.refused();
                return Err(PhaseError::Refused(refusal));
            }
            Err(TransactionError::Store(error @ StoreError::Lost(_))) => {
                return phases.lost(name, error).await.map_err(PhaseError::Store);
            }
            Err(TransactionError::Store(error)) => error,
            // A closure that panicked is rolled back: as with a store that failed, nothing was written.
            Err(error @ TransactionError::Panicked(_)) => StoreError::Unavailable(error.to_string()),
        };
        phases.failed();
        Err(PhaseError::Store(error))
    }
}
