//! The lease watch: finds owners that gave no sign of life, without a request coming by.

use super::lease::{LEASE_OVER, lease_left};
use super::{Change, Refusal, doubt};
use crate::history::Actor;
use crate::policy::{Policy, Stale};
use crate::record::{Record, State};
use crate::time::Now;

/// The lease watch looks at the record.
///
/// # Errors
/// Why nothing changes.
pub fn watch(record: &Record, policy: &Policy, now: impl Into<Now>) -> Result<Change, Refusal> {
    if record.state != State::InProgress || !lease_left(record, policy, now.into()).is_zero() {
        return Err(Refusal::NotDue);
    }
    match policy.stale {
        Stale::Unknown => Ok(doubt(record, policy.settling, LEASE_OVER, Actor::LeaseWatch)),
        // Only a request brings along what has to be executed.
        Stale::Resume | Stale::Rerun => Err(Refusal::LeftToRetry),
    }
}
