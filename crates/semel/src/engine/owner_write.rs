//! Writes of an owner: its writes, decided by the state machine on the record as last seen.

use super::Shared;
use super::right::Seen;
use crate::observe::{Event, log_doubt};
use crate::policy::Settling;
use crate::record::Record;
use crate::store::StoreError;
use crate::store::cas::{Decide, Decided, Look, Updated, compare_and_swap, locked};
use crate::transition::{Act, Change, Claim, Refusal, act};
use std::sync::PoisonError;

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
    let begun = shared.environment.boottime();
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
            // The caller's next write finds out.
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
