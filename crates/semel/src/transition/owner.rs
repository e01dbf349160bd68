//! The owner of an attempt.

use super::{Change, Refusal, Windows, doubt, finish, next_version, put, told};
use crate::history::{Actor, Happening};
use crate::identity::{OperationId, Owner};
use crate::policy::Settling;
use crate::record::{Origin, Record, Resource, State, StoredResponse};
use crate::time::When;
use alloc::string::String;
use bytes::Bytes;
use core::time::Duration;

/// What an owner names itself by. All three have to be the record's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    /// The operation,
    pub operation_id: OperationId,
    /// the attempt at it,
    pub attempt: u32,
    /// and the token of the ownership.
    pub owner: Owner,
}

impl Claim {
    /// The claim of the owner of `record`.
    #[must_use]
    pub fn of<T>(record: &Record<T>) -> Self {
        Self { operation_id: record.operation_id, attempt: record.attempt, owner: record.owner }
    }

    /// Whether `record` is still, or ended, under this ownership.
    #[must_use]
    pub fn holds<T>(&self, record: &Record<T>) -> bool {
        *self == Self::of(record)
    }
}

/// What an owner does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Act {
    /// Gives a sign of life.
    Extend {
        /// The lease, from now.
        lease: Duration,
    },
    /// Commits a recovery point.
    Advance {
        /// Its name.
        point: String,
        /// What an attempt that resumes there needs to know.
        checkpoint: Option<Bytes>,
        /// The lease, from now.
        lease: Duration,
    },
    /// It happened.
    Complete {
        /// What retries get; `None` where nothing is kept.
        response: Option<StoredResponse>,
        /// What was made.
        resource: Option<Resource>,
        /// How long all this is kept.
        windows: Windows,
    },
    /// It failed for good.
    Fail {
        /// What retries get; `None` where nothing is kept.
        response: Option<StoredResponse>,
        /// What it concerns.
        resource: Option<Resource>,
        /// How long all this is kept.
        windows: Windows,
    },
    /// It is proved that nothing happened: the next request may execute.
    Retryable {
        /// A code for what went wrong.
        error: String,
        /// How long this is kept.
        windows: Windows,
    },
    /// Nothing happened and nothing is to be remembered of it.
    Release {
        /// How long a later attempt, which goes back to retryable, is kept.
        windows: Windows,
    },
    /// The owner does not know whether it happened.
    Doubt {
        /// A code for what went wrong.
        error: String,
        /// How doubt is settled.
        settling: Settling,
    },
}

/// The owner acts. The lease is not looked at: fencing is by owner, never by a clock.
///
/// # Errors
/// Why the act changes nothing.
pub fn act(record: &Record, claim: &Claim, act: &Act) -> Result<Change, Refusal> {
    if !claim.holds(record) {
        return Err(Refusal::Fenced);
    }
    let late = match record.state {
        State::InProgress => false,
        State::Unknown => true,
        _ => return Err(Refusal::Finished),
    };
    let finished = |state, response: &Option<StoredResponse>, resource: &Option<Resource>, windows| {
        let mut next = finish(next_version(record), state, response.clone(), resource.clone(), windows);
        next.last_error = None;
        let history = if late {
            told(Happening::FinishedLate, Actor::Owner, record.attempt, Some(state.as_str().into()))
        } else {
            None
        };
        put(next, history)
    };
    match act {
        Act::Complete { response, resource, windows } => {
            Ok(finished(State::Completed, response, resource, *windows))
        }
        Act::Fail { response, resource, windows } => {
            Ok(finished(State::FailedReplayable, response, resource, *windows))
        }
        _ if late => Err(Refusal::InDoubt),
        Act::Extend { lease } => {
            let mut next = next_version(record);
            next.times.lease = When::In(*lease);
            Ok(put(next, None))
        }
        Act::Advance { point, .. } if record.recovery_point.as_ref() == Some(point) => {
            Err(Refusal::AlreadyAdvanced)
        }
        Act::Advance { point, checkpoint, lease } => {
            let mut next = next_version(record);
            next.recovery_point = Some(point.clone());
            next.checkpoint.clone_from(checkpoint);
            next.times.lease = When::In(*lease);
            Ok(put(next, None))
        }
        Act::Doubt { error, settling } => Ok(doubt(record, *settling, error, Actor::Owner)),
        Act::Retryable { .. } | Act::Release { .. } if record.origin == Origin::Doubt => {
            Err(Refusal::TookOverDoubt)
        }
        Act::Retryable { error, windows } => {
            Ok(retryable(record, Happening::FailedRetryable, error, *windows))
        }
        Act::Release { windows } if record.origin == Origin::Retry => {
            Ok(retryable(record, Happening::Released, "released", *windows))
        }
        Act::Release { .. } if record.recovery_point.is_some() => Err(Refusal::PastRecoveryPoint),
        Act::Release { .. } => Ok(Change::Remove),
    }
}

fn retryable(record: &Record, happening: Happening, error: &str, windows: Windows) -> Change {
    let mut next = finish(next_version(record), State::FailedRetryable, None, None, windows);
    next.last_error = Some(error.into());
    put(next, told(happening, Actor::Owner, record.attempt, Some(error.into())))
}
