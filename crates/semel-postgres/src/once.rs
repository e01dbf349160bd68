//! A purely local operation: reserved and finished in one commit.

use crate::connections::begin;
use crate::error::{ActError, CommitError, unavailable};
use crate::same_transaction::Reserved;
use crate::store::PgStore;
use semel::transition::Claim;
use semel::{
    BeginError, Decision, Engine, Incoming, OperationId, Outcome, Record, RecordKey, State, Store as _,
    StoreError, Ticket,
};
use sqlx::postgres::PgConnection;
use std::time::Duration;

/// How often an operation that has ended is looked at, for as long as others hold its key, and how long after each other. Each of
/// the others holds it for three round trips, once.
const MOST_LOOKS: u32 = 50;
const A_MOMENT: Duration = Duration::from_millis(5);

/// What became of a purely local operation.
#[derive(Debug)]
pub enum Once<T> {
    /// It was executed and committed, and its work came to this.
    Executed(T),
    /// It was not executed: a replay, a conflict, …. Never [`Decision::Execute`].
    Decided(Decision),
}

/// Why a purely local operation was not executed. A retry is safe in every case: its work is committed together with its
/// record, or not at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OnceError<E> {
    /// The work failed. It is rolled back, and the operation is as if it had never been asked for.
    #[error("the work failed and was rolled back")]
    Application(E),
    /// Another attempt finished the operation meanwhile. The work is rolled back.
    #[error("another attempt took over, or the outcome was settled: {0:?}")]
    Refused(semel::transition::Refusal),
    /// Nothing could be decided, or the commit failed; with [`StoreError::Lost`], it is there or it is not.
    #[error(transparent)]
    Begin(#[from] BeginError),
}

impl PgStore {
    /// Executes an operation whose every effect is in this database: the reservation, the domain rows of `work` and the outcome are
    /// **one** commit, where the layer needs two.
    ///
    /// A crash leaves all of it or nothing, so that the operation is never in doubt, and [`Stale::Rerun`](semel::Stale::Rerun) is
    /// the right policy. Duplicates do not wait for an open transaction: they are answered that it is in progress.
    ///
    /// # Errors
    /// Nothing was executed, or (with [`StoreError::Lost`]) the whole of it was; a retry finds out.
    pub async fn once<T, E>(
        &self,
        engine: &Engine,
        incoming: Incoming<'_>,
        work: impl AsyncFnOnce(&mut PgConnection, OperationId) -> Result<(T, Outcome), E>,
    ) -> Result<Once<T>, OnceError<E>> {
        let draft = engine.draft(&incoming).await?;
        let mut transaction = self.begin().await?;
        let reserved = self.reserve_in(&mut transaction, draft).await;
        match reserved.inspect_err(|_| engine.ask_key_format_again()).map_err(failed)? {
            Reserved::New(record) => {
                let worked = work(&mut *transaction, record.operation_id).await;
                let (value, outcome) = worked.map_err(OnceError::Application)?;
                let (claim, act) =
                    (Claim::of(&record), engine.outcome_writes(&record, &incoming.policy).act(outcome));
                match self.commit_with(transaction, &claim, &act).await {
                    Ok(_) => Ok(Once::Executed(value)),
                    Err(CommitError::Refused(refusal)) => Err(OnceError::Refused(refusal)),
                    Err(CommitError::Store(lost @ StoreError::Lost(_)))
                        if self.own(&claim).await.is_some() =>
                    {
                        tracing::debug!(%lost, "the commit's answer was lost; read back: it is committed");
                        Ok(Once::Executed(value))
                    }
                    Err(CommitError::Store(error)) => Err(BeginError::Store(error).into()),
                }
            }
            Reserved::Exists(_) | Reserved::Locked => {
                // Now, and not some time after it is dropped: it holds the key.
                let _ended = transaction.rollback().await;
                match self.decided(engine, &incoming).await? {
                    Decision::Execute(ticket) => self.again(ticket, work).await,
                    decision => Ok(Once::Decided(decision)),
                }
            }
        }
    }

    /// What the engine decides. It takes a held key for one that is worked on; but where the operation has ended, whoever holds it
    /// is another duplicate that tries to be the first, and gone in a moment.
    async fn decided(&self, engine: &Engine, incoming: &Incoming<'_>) -> Result<Decision, BeginError> {
        let Incoming { key, subject, policy } = incoming;
        let mut looks = 0;
        loop {
            let asking = Incoming { key: key.clone(), subject: *subject, policy: policy.clone() };
            let decision = engine.begin(asking).await?;
            let held = matches!(decision, Decision::InProgress { operation_id: None, .. });
            looks += 1;
            if !held || looks == MOST_LOOKS || !self.has_ended(engine.stored_key(key).await?).await? {
                return Ok(decision);
            }
            tokio::time::sleep(A_MOMENT).await;
        }
    }

    async fn has_ended(&self, key: RecordKey) -> Result<bool, StoreError> {
        let found = self.read(vec![key]).await?;
        Ok(found.items.iter().flatten().any(|record| record.state != State::InProgress))
    }

    /// The record was there, and may be executed again: by its owner, which this is now.
    async fn again<T, E>(
        &self,
        ticket: Ticket,
        work: impl AsyncFnOnce(&mut PgConnection, OperationId) -> Result<(T, Outcome), E>,
    ) -> Result<Once<T>, OnceError<E>> {
        let mut transaction = match self.begin().await {
            Ok(transaction) => transaction,
            Err(error) => return Err(given_back(ticket, error).await),
        };
        let (value, outcome) = match work(&mut *transaction, ticket.operation_id()).await {
            Ok(worked) => worked,
            Err(error) => {
                drop(transaction);
                return Err(given_back(ticket, OnceError::Application(error)).await);
            }
        };
        match self.commit_with(transaction, &ticket.claim(), &ticket.outcome_writes().act(outcome)).await {
            Ok(record) => {
                ticket.committed_elsewhere(record.as_ref());
                Ok(Once::Executed(value))
            }
            Err(CommitError::Refused(refusal)) => Err(given_back(ticket, OnceError::Refused(refusal)).await),
            Err(CommitError::Store(error @ StoreError::Lost(_))) => {
                // The transaction held the record until its end: giving it back succeeds only once it is rolled back, and is
                // refused if it is committed.
                let claim = ticket.claim();
                let lost = given_back(ticket, BeginError::Store(error).into()).await;
                match self.own(&claim).await.map(|record| record.state) {
                    Some(State::Completed | State::FailedReplayable) => Ok(Once::Executed(value)),
                    _ => Err(lost),
                }
            }
            Err(CommitError::Store(error)) => Err(given_back(ticket, BeginError::Store(error).into()).await),
        }
    }

    async fn begin<E>(&self) -> Result<sqlx::Transaction<'static, sqlx::Postgres>, OnceError<E>> {
        begin(self.pool()).await.map_err(|error| BeginError::Store(unavailable(&error)).into())
    }

    /// The record, if it is this ownership's.
    async fn own(&self, claim: &Claim) -> Option<Record> {
        let found = self.find(vec![claim.operation_id]).await.ok()?;
        found.items.into_iter().flatten().find(|record| claim.holds(record))
    }
}

/// Nothing was done in this attempt: another one may execute.
async fn given_back<E>(ticket: Ticket, why: OnceError<E>) -> OnceError<E> {
    // Kept on trying in the background if the store does not take it now.
    let _later = ticket.finish(Outcome::Released).await;
    why
}

fn failed<E>(error: ActError) -> OnceError<E> {
    BeginError::Store(error.into_store_error()).into()
}
