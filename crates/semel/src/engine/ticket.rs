//! The right to execute one attempt.

use super::acts::Acts;
use super::outstanding::OneOutstanding;
use super::phases::Interrupted;
use super::pulse::Heartbeat;
use super::right::{Right, RightEnded, Seen};
use super::{Engine, Shared};
use crate::boottime;
use crate::identity::OperationId;
use crate::observe::{Event, log_doubt};
use crate::policy::{Policy, Settling};
use crate::record::Record;
use crate::store::StoreError;
use crate::store::cas::{Decide, Decided, Look, Updated, compare_and_swap, locked};
use crate::transition::{Act, Change, Claim, Refusal, act};
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
    pub(super) acts: Acts,
    /// The record as last seen. The heartbeat and the owner's other acts both write, and whoever loses on the version goes on
    /// from what came back. With it, whether the owner may go on.
    pub(super) seen: Arc<Seen>,
    pub(super) runtime: Handle,
    pub(super) interrupted: Interrupted,
    _heartbeat: Heartbeat,
    _outstanding: OneOutstanding,
}

/// Why a recovery point was not committed. The work must stop: it is not the owner's any more, or nobody can know.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// The owner may not write any more.
    #[error("this attempt may not go on: {0:?}")]
    Refused(Refusal),
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// The ticket of whoever owns `record`, whose lease was asked for at `begun`, or later.
    pub(super) fn ticket(&self, record: Record, policy: &Arc<Policy>, begun: Duration) -> Ticket {
        let claim = Claim::of(&record);
        let acts = self.acts(&record, policy);
        let seen = Arc::new(Seen::new(record, begun, policy.lease));
        let heartbeat = Heartbeat::start(&self.shared, claim, Arc::clone(&seen), policy.lease);
        Ticket {
            held: Some(Held {
                _outstanding: self.shared.outstanding.one_more(),
                shared: Arc::clone(&self.shared),
                claim,
                acts,
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
        &self.held().acts.policy
    }

    /// Whether this owner may still go on, for whoever does its work.
    #[must_use]
    pub fn right(&self) -> Right {
        Right { seen: Arc::clone(&self.held().seen) }
    }

    /// What makes this owner's acts for a transaction of the application's.
    #[must_use]
    pub fn acts(&self) -> Acts {
        self.held().acts.clone()
    }

    /// The last committed recovery point, and what was left there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]: what was left there is sealed and does not open.
    pub fn recovery_point(&self) -> Result<Option<(String, Option<Bytes>)>, StoreError> {
        let held = self.held();
        let seen = held.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(point) = seen.recovery_point.clone() else { return Ok(None) };
        Ok(Some((point, held.acts.checkpoint_of(&seen)?)))
    }

    /// The identity of one effect of this operation, to send to whoever carries it out: the same on every attempt, another one for
    /// every `effect`.
    #[must_use]
    pub fn downstream_key(&self, effect: &str) -> String {
        downstream_key(self.operation_id(), effect)
    }

    /// Commits a recovery point: whoever takes over goes on after it.
    ///
    /// # Errors
    /// It was not committed, or nobody can know. Stop, and finish the ticket as unknown.
    pub async fn advance(&mut self, point: &str, checkpoint: Option<Bytes>) -> Result<(), AdvanceError> {
        let held = self.held();
        let act = held.acts.advance(point.to_owned(), checkpoint);
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
        let act = Act::Doubt { error: error.to_owned(), settling: held.acts.policy.settling };
        async move {
            match write(&shared, &claim, &seen, &act).await {
                Ok(Written::Done) => log_own_doubt(&claim, &act, &seen),
                Ok(Written::Refused(..)) => {}
                Err(error) => {
                    tracing::warn!(operation_id = %claim.operation_id, %error, "the doubt could not be written");
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

/// Logs a doubt of the owner's own that was just written.
pub(super) fn log_own_doubt(claim: &Claim, act: &Act, seen: &Seen) {
    if let Act::Doubt { error, settling } = act {
        let is_dead_letter = *settling == Settling::Operator;
        let detail = seen.detail.lock().unwrap_or_else(PoisonError::into_inner);
        log_doubt(claim.operation_id, claim.attempt, error, is_dead_letter, detail.as_deref());
    }
}

/// What became of an owner's write.
pub(super) enum Written {
    Done,
    /// Refused, and what is there, if anything.
    Refused(Refusal, Option<Box<Record>>),
}

/// Writes as the owner: decided on the record as last seen, and again on whatever the store says is there instead.
pub(super) async fn write(
    shared: &Shared,
    claim: &Claim,
    seen: &Seen,
    owner_act: &Act,
) -> Result<Written, StoreError> {
    let begun = boottime::now();
    seen.about_to(owner_act);
    let written = decide_and_write(shared, claim, seen, owner_act).await;
    match &written {
        Ok(Written::Done) => seen.written(owner_act, begun),
        Ok(Written::Refused(refusal, _)) => seen.refused(*refusal),
        Err(_) => {}
    }
    written
}

async fn decide_and_write(
    shared: &Shared,
    claim: &Claim,
    seen: &Seen,
    owner_act: &Act,
) -> Result<Written, StoreError> {
    let mut decision = OwnerWrite { claim, seen, owner_act, removing: false };
    let updated = compare_and_swap(&shared.store, &mut decision).await;
    let count_error = |_: &StoreError| {
        let record = seen.lock().unwrap_or_else(PoisonError::into_inner);
        shared.count(&record.key.operation, Event::StoreError);
    };
    match updated.inspect_err(count_error)? {
        Updated::Written(written) => {
            if let Some(written) = written {
                shared.written(&written);
                see(seen, *written);
            }
            Ok(Written::Done)
        }
        Updated::Stopped(written) => Ok(written),
        Updated::Missing if decision.removing => Ok(Written::Done),
        Updated::Missing => Ok(Written::Refused(Refusal::Fenced, None)),
        Updated::Locked => Err(locked()),
    }
}

/// An act of the owner's, decided on the record as last seen.
struct OwnerWrite<'a> {
    claim: &'a Claim,
    seen: &'a Seen,
    owner_act: &'a Act,
    /// Whether the record is to be removed.
    removing: bool,
}

impl OwnerWrite<'_> {
    fn decide_now(&mut self, look: Look) -> Result<Decided<Written>, StoreError> {
        let mut record = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match look {
            Look::First => {}
            // It is gone, as it should be: an answer of ours was lost, and this is the second time.
            Look::Changed(other, _) if self.removing && other.operation_id != self.claim.operation_id => {
                return Ok(Decided::Stop(Written::Done));
            }
            // Whatever it is, an earlier version as well: a failover may have lost what was written last.
            Look::Changed(other, _) => *record = *other,
            // Whoever writes again finds out.
            Look::Lost(error) => return Err(error),
        }
        Ok(match act(&record, self.claim, self.owner_act) {
            Ok(change) => {
                self.removing = matches!(change, Change::Remove);
                Decided::Write(record.expected(), change)
            }
            Err(refusal) => Decided::Stop(Written::Refused(refusal, Some(Box::new(record.clone())))),
        })
    }
}

impl Decide for OwnerWrite<'_> {
    type Stop = Written;

    async fn decide(&mut self, look: Look) -> Result<Decided<Written>, StoreError> {
        self.decide_now(look)
    }
}

/// Remembers the newest record seen: of one operation, a higher version; of another operation, whatever the store said last.
pub(super) fn see(seen: &Seen, record: Record) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.operation_id != record.operation_id || seen.version < record.version {
        *seen = record;
    }
}
