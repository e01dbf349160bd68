//! Local phases: domain rows and the recovery point in one commit.

use crate::connections::begin;
use crate::error::{CommitError, unavailable};
use crate::store::PgStore;
use semel::{Checkpoint, Entered, PhaseError, Phases, StoreError};
use sqlx::postgres::PgConnection;

impl PgStore {
    /// Runs `work` as the local phase `name`, unless an earlier attempt has: its domain rows and the recovery point are one commit.
    ///
    /// What it returns is kept with the operation, as JSON, and is what a later attempt gets without running it. It has to do
    /// nothing but its statements: outside calls belong into [`Phases::foreign`].
    ///
    /// ```no_run
    /// # use semel::{PhaseError, Ticket};
    /// # use semel_postgres::PgStore;
    /// # async fn run(store: PgStore, ticket: &Ticket) -> Result<(), PhaseError<sqlx::Error>> {
    /// let mut phases = ticket.phases()?;
    /// let payment: String = store
    ///     .phase(&mut phases, "payment_created", async |tx| {
    ///         sqlx::query("INSERT INTO payments (id) VALUES ($1)").bind("pay_1").execute(tx).await?;
    ///         Ok("pay_1".to_owned())
    ///     })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Nothing was written, or (with [`StoreError::Lost`]) that is unknown; the next attempt resumes from what is there.
    pub async fn phase<T: Checkpoint, E>(
        &self,
        phases: &mut Phases,
        name: &str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    ) -> Result<T, PhaseError<E>> {
        let step = match phases.local(name)? {
            Entered::Done(value) => return Ok(value),
            Entered::Now(step) => step,
        };
        let failed = |phases: &mut Phases, error: StoreError| {
            phases.failed();
            PhaseError::Store(error)
        };
        let mut transaction = match begin(self.pool()).await {
            Ok(transaction) => transaction,
            Err(error) => return Err(failed(phases, unavailable(&error))),
        };
        let worked = work(&mut *transaction).await.map_err(PhaseError::Application);
        let worked = worked.and_then(|value| Ok((step.act(&value).map_err(PhaseError::Kept)?, value)));
        let (act, value) = worked.inspect_err(|_| phases.rolled_back())?;
        match self.commit_with(transaction, &step.claim(), &act).await {
            Ok(record) => {
                phases.committed(record.as_ref());
                Ok(value)
            }
            Err(CommitError::Refused(refusal)) => {
                phases.refused();
                Err(PhaseError::Refused(refusal))
            }
            Err(CommitError::Store(error @ StoreError::Lost(_))) => {
                phases.lost(name, error).await.map_err(PhaseError::Store)
            }
            Err(CommitError::Store(error)) => Err(failed(phases, error)),
        }
    }
}
