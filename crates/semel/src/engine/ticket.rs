//! The right to execute one attempt.

use super::heartbeats::Heartbeat;
use super::in_flight::InFlightGuard;
use super::interruption::Interrupted;
use super::outcome_writes::OutcomeWrites;
use super::owner_write::{Written, log_own_doubt, write};
use super::right::{Right, RightEnded, Seen};
use super::{Engine, Shared};
use crate::identity::OperationId;
use crate::policy::Policy;
use crate::record::Record;
use crate::store::StoreError;
use crate::transition::{Act, Claim, Refusal};
use bytes::Bytes;
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// The right to execute one attempt, and the duty to say how it ended.
///
/// It can only be had from a reservation. While it lives, a heartbeat extends the lease at a third of it. Finishing consumes it;
/// dropped unfinished (a panic, a forgotten branch), the outcome becomes unknown, never released.
#[must_use = "a ticket that is dropped makes the outcome unknown"]
pub struct Ticket {
    held: Option<Held>,
}

/// What a ticket holds, and what is left of it while an outcome is yet to be written.
pub(super) struct Held {
    pub(super) shared: Arc<Shared>,
    pub(super) claim: Claim,
    pub(super) writes: OutcomeWrites,
    /// The record as last seen. The heartbeat and the owner's other writes both write, and the one that loses on the version continues
    /// from what came back. With it, whether the owner may go on.
    pub(super) seen: Arc<Seen>,
    pub(super) runtime: Handle,
    pub(super) interrupted: Interrupted,
    _heartbeat: Heartbeat,
    _in_flight: InFlightGuard,
}

/// Why a recovery point was not committed. The work must stop: the owner was fenced, or the commit may be lost.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The owner may not write any more.
    #[error("this attempt must stop: {0:?}")]
    Refused(Refusal),
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// The ticket for `record`, whose lease was requested at `begun` or later.
    pub(super) fn ticket(&self, record: Record, policy: &Arc<Policy>, begun: Duration) -> Ticket {
        let claim = Claim::of(&record);
        let writes = self.outcome_writes(&record, policy);
        let seen = Arc::new(Seen::begun(record, begun, self.environment().clone(), policy.lease));
        let heartbeat = Heartbeat::start(&self.shared, claim, Arc::clone(&seen), policy.lease);
        Ticket {
            held: Some(Held {
                _in_flight: self.shared.in_flight.enter(),
                shared: Arc::clone(&self.shared),
                claim,
                writes,
                seen,
                runtime: Handle::current(),
                interrupted: Interrupted::default(),
                _heartbeat: heartbeat,
            }),
        }
    }
}

impl Ticket {
    /// The operation's id, the same on every attempt.
    #[must_use]
    pub fn operation_id(&self) -> OperationId {
        self.claim().operation_id
    }

    /// The attempt, counted from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.claim().attempt
    }

    /// What the owner names itself by in writes of its own, as inside an application's transaction.
    #[must_use]
    pub fn claim(&self) -> Claim {
        self.held().claim
    }

    /// The rules of the operation.
    #[must_use]
    pub fn policy(&self) -> &Arc<Policy> {
        &self.held().writes.policy
    }

    /// Whether this owner may still act. For the code that does the work.
    #[must_use]
    pub fn right(&self) -> Right {
        Right { seen: Arc::clone(&self.held().seen) }
    }

    /// What makes this owner's writes for a transaction of the application's.
    #[must_use]
    pub fn outcome_writes(&self) -> OutcomeWrites {
        self.held().writes.clone()
    }

    /// The last committed recovery point, and what was left there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]: what was left there is sealed and does not open.
    pub fn recovery_point(&self) -> Result<Option<(String, Option<Bytes>)>, StoreError> {
        let held = self.held();
        let seen = held.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(point) = seen.recovery_point.clone() else { return Ok(None) };
        Ok(Some((point, held.writes.checkpoint_of(&seen)?)))
    }

    /// The downstream key of one effect of this operation, to send to the provider: the same on every attempt, another one for
    /// every `effect`.
    #[must_use]
    pub fn downstream_key(&self, effect: &str) -> String {
        downstream_key(self.operation_id(), effect)
    }

    /// Commits a recovery point: a later owner resumes after it.
    ///
    /// # Errors
    /// It was not committed, or that is unknown. Stop, and finish the ticket as unknown.
    pub async fn advance(&mut self, point: &str, checkpoint: Option<Bytes>) -> Result<(), AdvanceError> {
        let held = self.held();
        let act = held.writes.advance(point.to_owned(), checkpoint);
        let mut advanced = write(&held.shared, &held.claim, &held.seen, &act).await;
        if matches!(advanced, Err(StoreError::Lost(_))) {
            // What the store has is what it says when asked again.
            advanced = write(&held.shared, &held.claim, &held.seen, &act).await;
        }
        match advanced? {
            Written::Done | Written::Refused(Refusal::AlreadyAdvanced, _) => Ok(()),
            Written::Refused(refusal, _) => Err(AdvanceError::Refused(refusal)),
        }
    }

    /// Says that the outcome is in doubt, without giving the ticket up: the work goes on, and its late outcome still counts.
    ///
    /// The [right](Self::right) to execute ends with the call, before anything is written: what is not sent by then is never sent. The future does not borrow the ticket. If the store does not take it in time, the end of the lease will say the same.
    pub fn doubt(&self, error: &str) -> impl Future<Output = ()> + Send + use<> {
        let held = self.held();
        held.seen.end(RightEnded::InDoubt);
        let (shared, claim, seen) = (Arc::clone(&held.shared), held.claim, Arc::clone(&held.seen));
        let act = Act::Doubt { error: error.to_owned(), settling: held.writes.policy.settling };
        async move {
            match write(&shared, &claim, &seen, &act).await {
                Ok(Written::Done) => log_own_doubt(&claim, &act, &seen),
                Ok(Written::Refused(..)) => {}
                Err(error) => {
                    tracing::warn!(operation_id = %claim.operation_id, %error, "the unknown outcome could not be stored");
                }
            }
        }
    }

    /// Says more about why the outcome is in doubt, for the log alone: the error of a connection, say. No keys, no bodies.
    pub fn explain(&self, detail: String) {
        *self.held().seen.detail.lock().unwrap_or_else(PoisonError::into_inner) = Some(detail);
    }

    /// Gives the ticket up without a write: a transaction of the application's has finished the operation, and left this record.
    pub fn committed_elsewhere(mut self, record: Option<&Record>) {
        if let Some(held) = self.take() {
            held.seen.keep();
            if let Some(record) = record {
                held.shared.written(record);
            }
        }
    }

    pub(super) fn take(&mut self) -> Option<Held> {
        self.held.take()
    }

    pub(super) fn held(&self) -> &Held {
        #[expect(
            clippy::expect_used,
            reason = "only finishing and dropping take it, and both consume the ticket"
        )]
        self.held.as_ref().expect("a ticket that can be named has not been finished")
    }
}

/// The identity of one effect of an operation.
#[must_use]
pub fn downstream_key(operation_id: OperationId, effect: &str) -> String {
    format!("{operation_id}:{effect}")
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(held) = self.take() {
            held.doubt_later("dropped_unfinished");
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let claim = self.held.as_ref().map(|held| held.claim);
        f.debug_struct("Ticket").field("claim", &claim).finish_non_exhaustive()
    }
}
