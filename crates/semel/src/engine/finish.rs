//! How an attempt ends, and what happens if the store does not take it.

use super::outcome::Outcome;
use super::owner_write::{Written, log_own_doubt, write};
use super::right::{RightEnded, Seen};
use super::ticket::{Held, Ticket};
use super::{Engine, moment_after};
use crate::identity::RecordKey;
use crate::policy::Policy;
use crate::record::Record;
use crate::trace::note;
use crate::transition::{Act, Claim, Refusal, Windows};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// What became of an outcome.
#[derive(Debug)]
pub enum Finish {
    /// It is stored as it was said.
    Stored,
    /// The outcome is unknown now: it was said to be, or it could not be called retryable or released any more.
    Unknown,
    /// Another attempt took the operation over, or evidence settled it. This is the record now.
    Fenced(Option<Box<Record>>),
}

/// The outcome could not be stored in time. It is tried on in the background, until it is stored or fenced.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the outcome could not be stored yet")]
pub struct FinishError;

pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many reservations are looked for at a time that may have been made, each with a task and with questions to the store.
pub(super) const MAX_ABANDONING: usize = 1024;

impl Ticket {
    /// Says how the attempt ended. The answer may go out once this has returned `Ok`.
    ///
    /// Dropping the future does not take the outcome back: it is written in the background.
    ///
    /// # Errors
    /// The store did not take it in time. Tell the client that the outcome is unknown; storing it is retried in the background.
    pub async fn finish(mut self, outcome: Outcome) -> Result<Finish, FinishError> {
        // Only a ticket that was finished already holds nothing, and finishing consumes it.
        let Some(held) = self.take() else { return Err(FinishError) };
        let said = outcome.as_str();
        let act = held.writes.act(outcome);
        let mut finishing = Finishing { work: Some((held, act)) };
        let finish = finishing.in_time().await;
        note(|noted| {
            noted.outcome = Some(match &finish {
                Ok(Finish::Stored) => said,
                Ok(Finish::Unknown) => "unknown",
                Ok(Finish::Fenced(_)) => "fenced",
                Err(FinishError) => "not_stored_yet",
            });
        });
        finish
    }

    /// The answer to a commit that was to finish this operation, in a transaction of the application's, was lost. The record, if
    /// the commit is there; if not, the outcome is unknown.
    pub async fn commit_lost(self) -> Option<Record> {
        let (seen, shared) = (Arc::clone(&self.held().seen), Arc::clone(&self.held().shared));
        // Calling it unknown is refused if our final word is there after all.
        match self.finish(Outcome::Unknown { error: "commit_lost".into() }).await {
            Ok(Finish::Stored) => {
                let record = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
                shared.opened(record).ok()
            }
            _ => None,
        }
    }
}

/// An outcome on its way to the store. Dropped on the way, it goes on in the background.
struct Finishing {
    work: Option<(Held, Act)>,
}

impl Finishing {
    async fn in_time(&mut self) -> Result<Finish, FinishError> {
        let Some((held, act)) = &mut self.work else { return Err(FinishError) };
        let timeout = held.shared.store.timeout();
        let finish = tokio::time::timeout(timeout, held.write_outcome(act)).await.map_err(|_| FinishError)?;
        self.work = None;
        Ok(finish)
    }
}

impl Drop for Finishing {
    fn drop(&mut self) {
        if let Some((held, mut act)) = self.work.take() {
            tracing::warn!(operation_id = %held.claim.operation_id, "the outcome is not stored yet; retrying in the background");
            let runtime = held.runtime.clone();
            runtime.spawn(async move { held.write_outcome(&mut act).await });
        }
    }
}

impl Held {
    /// Writes the outcome, however long it takes, or finds out that it is not ours to write any more.
    async fn write_outcome(&self, act: &mut Act) -> Finish {
        let mut pause = FIRST_PAUSE;
        loop {
            match write(&self.shared, &self.claim, &self.seen, act).await {
                Ok(Written::Done) if matches!(act, Act::Doubt { .. }) => {
                    log_own_doubt(&self.claim, act, &self.seen);
                    return Finish::Unknown;
                }
                // Our own final word is there: an answer of the store's was lost, and the word was not.
                Ok(Written::Done | Written::Refused(Refusal::Finished, _)) => return Finish::Stored,
                Ok(Written::Refused(Refusal::InDoubt, _)) => return Finish::Unknown,
                // The service says that nothing happened in this attempt; what earlier phases committed stays, and the next
                // attempt goes on after them.
                Ok(Written::Refused(Refusal::PastRecoveryPoint, _)) => {
                    *act = Act::Retryable {
                        error: "released".into(),
                        windows: Windows::from(&*self.writes.policy),
                    };
                }
                Ok(Written::Refused(Refusal::TookOverDoubt, _)) => {
                    *act =
                        Act::Doubt { error: "took_over_doubt".into(), settling: self.writes.policy.settling };
                }
                Ok(Written::Refused(refusal, record)) => {
                    tracing::warn!(operation_id = %self.claim.operation_id, ?refusal, "fenced: a late owner's write was refused");
                    return Finish::Fenced(record.map(|record| self.to_replay(record)));
                }
                Err(error) => {
                    tracing::warn!(operation_id = %self.claim.operation_id, %error, "the outcome could not be stored; retrying");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// The record that is stored instead, to be replayed. If it cannot be unsealed it stays sealed, so that it is never taken for an answer.
    fn to_replay(&self, record: Box<Record>) -> Box<Record> {
        match self.shared.opened((*record).clone()) {
            Ok(opened) => Box::new(opened),
            Err(error) => {
                tracing::error!(%error, "damaged record");
                record
            }
        }
    }

    /// Makes the outcome unknown in the background.
    pub(super) fn doubt_later(self, error: &str) {
        self.seen.end(RightEnded::InDoubt);
        let mut act = Act::Doubt { error: error.into(), settling: self.writes.policy.settling };
        let runtime = self.runtime.clone();
        runtime.spawn(async move { self.write_outcome(&mut act).await });
    }
}

impl Engine {
    /// Gives back what may have been reserved by a write whose answer was lost, and was certainly not executed.
    ///
    /// It looks for the record until the lease that it would have is over: by then nothing can turn up any more that the lease
    /// does not catch. At most [`MAX_ABANDONING`] reservations are looked for at once; beyond that they are left to their lease.
    pub(super) fn abandon_lost_reservation(&self, key: RecordKey, claim: Claim, policy: Arc<Policy>) {
        let shared = Arc::clone(&self.shared);
        let Ok(turn) = Arc::clone(&shared.abandoning).try_acquire_owned() else { return };
        tokio::spawn(async move {
            let _turn = turn;
            let deadline = moment_after(policy.lease);
            let mut pause = FIRST_PAUSE;
            while tokio::time::Instant::now() < deadline {
                if let Ok((_, Some(record))) = shared.store.read(&key).await
                    && claim.holds(&record)
                {
                    let release = Act::Release { windows: Windows::from(&*policy) };
                    let seen = Seen::new(record, shared.environment.clone(), policy.lease);
                    if write(&shared, &claim, &seen, &release).await.is_ok() {
                        return;
                    }
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        });
    }
}
