//! The record: everything that is remembered of one operation.

use crate::identity::{Fingerprint, OperationId, Owner, RecipeId, RecordKey};
use crate::time::{Now, Timestamp, When};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// Where an operation stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum State {
    /// An owner executes it, or did until its lease ran out.
    InProgress,
    /// It happened; its answer is replayed.
    Completed,
    /// It failed for good; the failure is replayed.
    FailedReplayable,
    /// It is proved that nothing happened; the next request executes.
    FailedRetryable,
    /// It is unknown whether it happened. Only evidence settles it.
    Unknown,
    /// Its window is over; a tombstone remains.
    Expired,
}

impl State {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::InProgress,
        Self::Completed,
        Self::FailedReplayable,
        Self::FailedRetryable,
        Self::Unknown,
        Self::Expired,
    ];

    /// The state's name, as stores, the admin API and people spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::FailedReplayable => "failed_replayable",
            Self::FailedRetryable => "failed_retryable",
            Self::Unknown => "unknown",
            Self::Expired => "expired",
        }
    }

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether the operation has ended: its window runs.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::FailedReplayable | Self::FailedRetryable)
    }
}

/// What the current attempt took over. It decides how the attempt may end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// Nothing: the first attempt. Only this one may end in "as if never seen".
    First,
    /// A failure that is proved to have done nothing.
    Retry,
    /// A lease that ran out, with who knows what done. It never ends in released or retryable.
    Doubt,
}

impl Origin {
    /// The origin's name, as stores spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Retry => "retry",
            Self::Doubt => "doubt",
        }
    }

    /// The origin of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::First, Self::Retry, Self::Doubt].into_iter().find(|origin| origin.as_str() == name)
    }
}

/// The body of a stored response.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Body {
    /// These bytes.
    Stored(Bytes),
    /// Body and headers, encrypted. See [`seal`](crate::seal).
    Sealed(Bytes),
    /// It was never kept: too large, streaming, or the policy keeps a reference alone.
    NotStored,
    /// It and the headers were kept once; their time is over.
    Dropped,
    /// It is in the store, or was until its time was over, but was not read along, nor were the headers (`list` and `due` do not). A store
    /// refuses to write this.
    Omitted,
}

impl Body {
    /// Whether it is there to be replayed.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        matches!(self, Self::Stored(_) | Self::Sealed(_))
    }
}

// Bodies stay out of logs.
impl core::fmt::Debug for Body {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Stored(bytes) => write!(f, "Stored({} bytes)", bytes.len()),
            Self::Sealed(bytes) => write!(f, "Sealed({} bytes)", bytes.len()),
            Self::NotStored => f.write_str("NotStored"),
            Self::Dropped => f.write_str("Dropped"),
            Self::Omitted => f.write_str("Omitted"),
        }
    }
}

/// The answer that retries get.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The kept headers, names in lower case, in order; none beside a body that is sealed, which has them in it, or that was dropped or
    /// omitted, which they are with it.
    pub headers: Vec<(String, Bytes)>,
    /// The body.
    pub body: Body,
    /// The schema version that the service declared for the body.
    pub schema_version: Option<String>,
}

impl StoredResponse {
    /// Whether there is anything about it that goes when its time is over: a body, or headers.
    #[must_use]
    pub fn has_droppable(&self) -> bool {
        self.body.is_kept() || !self.headers.is_empty()
    }
}

impl core::fmt::Debug for StoredResponse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("StoredResponse")
            .field("status", &self.status)
            .field("body", &self.body)
            .field("schema_version", &self.schema_version)
            .finish_non_exhaustive()
    }
}

/// What the operation made: `payment/pay_1`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Resource {
    /// Its type, such as `payment`.
    pub kind: String,
    /// Its id.
    pub id: String,
}

/// The moments in a record's life.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Times<T> {
    /// When the record was made.
    pub created: T,
    /// When the lease of the current owner runs out, or ran out.
    pub lease: T,
    /// When the operation came to a final state.
    pub completed: Option<T>,
    /// When body and headers of the answer are to go, if that is before the window ends.
    pub body_expires: Option<T>,
    /// When the window ends.
    pub expires: Option<T>,
    /// When the tombstone goes; `None` in a final state: never.
    pub purge: Option<T>,
    /// When an unknown record is to be asked about next.
    pub reconcile: Option<T>,
}

impl<T: Copy> Times<T> {
    /// The same moments, each passed through `f`.
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Times<U> {
        Times {
            created: f(self.created),
            lease: f(self.lease),
            completed: self.completed.map(&f),
            body_expires: self.body_expires.map(&f),
            expires: self.expires.map(&f),
            purge: self.purge.map(&f),
            reconcile: self.reconcile.map(&f),
        }
    }
}

impl Times<When> {
    /// The moments that a store writes at `now`: windows count from the latest time that it may be, everything else from the earliest.
    #[must_use]
    pub fn at(self, now: impl Into<Now>) -> Times<Timestamp> {
        let Now { earliest, latest, .. } = now.into();
        let (early, late) = (|when: When| when.at(earliest), |when: When| when.at(latest));
        Times {
            created: early(self.created),
            lease: early(self.lease),
            completed: self.completed.map(early),
            body_expires: self.body_expires.map(late),
            expires: self.expires.map(late),
            purge: self.purge.map(late),
            reconcile: self.reconcile.map(early),
        }
    }
}

/// Everything that is remembered of one operation.
///
/// `Record` (with [`Timestamp`]s) is what a store returns; [`Draft`] (with [`When`]s) is what is handed to it to write.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record<T = Timestamp> {
    /// What it is known by to its client.
    pub key: RecordKey,
    /// What it is known by to everybody else; fixed for life.
    pub operation_id: OperationId,
    /// What was asked for, hashed.
    pub fingerprint: Fingerprint,
    /// By which rules it was hashed.
    pub recipe: RecipeId,
    /// Where it stands.
    pub state: State,
    /// Up with every write.
    pub version: u64,
    /// Up each time an owner begins to execute; the first is 1.
    pub attempt: u32,
    /// Who executes, or wrote the final state.
    pub owner: Owner,
    /// What the current attempt took over.
    pub origin: Origin,
    /// The last committed recovery point.
    pub recovery_point: Option<String>,
    /// What the owner left at the recovery point for an attempt that resumes there.
    pub checkpoint: Option<Bytes>,
    /// The answer that retries get.
    pub response: Option<StoredResponse>,
    /// What the operation made.
    pub resource: Option<Resource>,
    /// A short code for what went wrong last.
    pub last_error: Option<String>,
    /// How often it was asked about since it became unknown.
    pub reconcile_attempts: u32,
    /// Nothing automatic will settle it any more: an operator has to.
    pub dead_letter: bool,
    /// When all of this happened or will.
    pub times: Times<T>,
}

/// A record to be written; the store counts its relative moments from its own now.
pub type Draft = Record<When>;

/// What a record waits for next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DueKind {
    /// The lease of an owner at work.
    Lease,
    /// The next question about an unknown outcome.
    Reconcile,
    /// The end of the window, where the record itself holds something that is to go then: a checkpoint.
    Window,
    /// The end of the tombstone.
    Purge,
}

impl DueKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Lease, Self::Reconcile, Self::Window, Self::Purge];

    /// The kind's name, as stores spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Reconcile => "reconcile",
            Self::Window => "window",
            Self::Purge => "purge",
        }
    }

    /// What such a moment counts from: windows from the latest time, leases and polls from the earliest.
    #[must_use]
    pub const fn stamped(self, now: Now) -> Timestamp {
        match self {
            Self::Lease | Self::Reconcile => now.earliest,
            Self::Window | Self::Purge => now.latest,
        }
    }
}

impl<T: Copy> Record<T> {
    /// The one thing that this record waits for, and when. Stores keep it in one index for [`due`](crate::Store::due).
    #[must_use]
    pub fn due(&self) -> Option<(DueKind, T)> {
        let times = &self.times;
        match self.state {
            State::InProgress => Some((DueKind::Lease, times.lease)),
            State::Unknown if self.dead_letter => None,
            State::Unknown => times.reconcile.map(|at| (DueKind::Reconcile, at)),
            State::Completed | State::FailedReplayable | State::FailedRetryable
                if self.checkpoint.is_some() =>
            {
                times.expires.map(|at| (DueKind::Window, at))
            }
            // The end of the window needs no write: every read judges it by the time. The answer is stored apart and dropped separately.
            State::Completed | State::FailedReplayable | State::FailedRetryable | State::Expired => {
                times.purge.map(|at| (DueKind::Purge, at))
            }
        }
    }

    /// When the answer that retries get is over: from then on it may be dropped ([`drop_answers`](crate::Store::drop_answers)).
    #[must_use]
    pub fn answer_ends(&self) -> Option<T> {
        self.response.as_ref().and(self.times.body_expires.or(self.times.expires))
    }

    pub(crate) fn map_times<U>(self, f: impl FnOnce(Times<T>) -> Times<U>) -> Record<U> {
        let times = f(self.times);
        Record {
            key: self.key,
            operation_id: self.operation_id,
            fingerprint: self.fingerprint,
            recipe: self.recipe,
            state: self.state,
            version: self.version,
            attempt: self.attempt,
            owner: self.owner,
            origin: self.origin,
            recovery_point: self.recovery_point,
            checkpoint: self.checkpoint,
            response: self.response,
            resource: self.resource,
            last_error: self.last_error,
            reconcile_attempts: self.reconcile_attempts,
            dead_letter: self.dead_letter,
            times,
        }
    }
}

impl Draft {
    /// The record that a store writes whose clock says `now`: windows are stamped from the latest time, leases from the earliest.
    #[must_use]
    pub fn at(self, now: impl Into<Now>) -> Record {
        let now = now.into();
        self.map_times(|times| times.at(now))
    }

    /// What the written record waits for, and when, for a store that keeps it in a column of its own.
    #[must_use]
    pub fn due_at(&self, now: impl Into<Now>) -> Option<(DueKind, Timestamp)> {
        let now = now.into();
        self.due().map(|(kind, when)| (kind, when.at(kind.stamped(now))))
    }
}

impl Record {
    /// What a swap has to find in the store to succeed.
    #[must_use]
    pub fn expected(&self) -> Expected {
        Expected { key: self.key.clone(), operation_id: self.operation_id, version: self.version }
    }

    /// What has to hold in every record; a store that reads one that breaks it reports damage.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), &'static str> {
        let (times, windowed) = (&self.times, self.times.expires.is_some());
        let answered = self.response.is_some();
        match self.state {
            _ if self.version == 0 => Err("the version is zero"),
            _ if self.attempt == 0 => Err("the attempt is zero"),
            State::InProgress | State::Unknown if windowed => Err("an unfinished operation has a window"),
            State::InProgress | State::Unknown if answered => Err("an unfinished operation has a response"),
            State::InProgress if self.dead_letter => Err("an operation in progress is a dead letter"),
            State::Unknown if self.dead_letter && times.reconcile.is_some() => {
                Err("a dead letter is to be reconciled")
            }
            State::Completed | State::FailedReplayable | State::FailedRetryable if !windowed => {
                Err("a finished operation has no window")
            }
            State::FailedRetryable if answered => Err("a retryable failure has a response"),
            State::Expired if answered => Err("a tombstone has a response"),
            State::Completed | State::FailedReplayable if times.completed.is_none() => {
                Err("a finished operation has no time of completion")
            }
            State::Completed | State::FailedReplayable | State::FailedRetryable | State::Expired
                if self.dead_letter =>
            {
                Err("a settled operation is a dead letter")
            }
            _ => Ok(()),
        }
    }
}

/// What a conditional write has to find in the store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Expected {
    /// The record of this key,
    pub key: RecordKey,
    /// with this operation id,
    pub operation_id: OperationId,
    /// at this version.
    pub version: u64,
}
