//! Events and measurements, for metrics and logs.
//!
//! The engine, the layer and the workers beside them tell an [`Observer`]; what becomes of it (Prometheus, a log, a test) is
//! the observer's business. An engine without one measures nothing.
//!
//! ```
//! use semel::observe::{Event, Observer};
//! use semel::{Engine, EngineOptions, MemoryStore};
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! #[derive(Default)]
//! struct Misuse(AtomicU64);
//!
//! impl Observer for Misuse {
//!     fn count(&self, _operation: &str, event: Event) {
//!         if event == Event::ReserveKeyMisuse {
//!             self.0.fetch_add(1, Ordering::Relaxed);
//!         }
//!     }
//! }
//!
//! let options = EngineOptions { observer: Some(Arc::new(Misuse::default())), ..EngineOptions::default() };
//! let engine = Engine::with_options(Arc::new(MemoryStore::new()), options);
//! ```

use crate::identity::OperationId;
use crate::record::{Record, State};
use std::time::Duration;

/// Receives events and measurements. Every method does nothing by default.
///
/// It is called on the way of every request: it must not block, and should not allocate.
///
/// `operation` is the operation's name as its records have it. Where the names come from clients (a gateway without a
/// configuration names an operation by its path), their number is unbounded: an observer that makes a label of it has to bound it.
pub trait Observer: Send + Sync + 'static {
    /// Something happened to a request or a record of this operation.
    fn count(&self, operation: &str, event: Event) {
        let _ = (operation, event);
    }

    /// A protected request was answered, this long after it arrived.
    fn request(&self, operation: &str, took: Duration) {
        let _ = (operation, took);
    }

    /// A call to the store ended: with an answer, or failed or out of time.
    fn store_call(&self, call: StoreCall, took: Duration, answered: bool) {
        let _ = (call, took, answered);
    }

    /// So many requests share the call to the store that begins now.
    fn batch(&self, call: StoreCall, size: usize) {
        let _ = (call, size);
    }
}

/// What is counted. Each says when.
///
/// What is counted about a write is what this process knows to have written: a write whose answer was lost is not counted,
/// although it may have been done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A request reserved a new operation, and executes it.
    ReserveCreated,
    /// A request got the outcome of an operation that had ended: the stored answer, or that the answer was not stored.
    ReserveReplay,
    /// A request was answered that another one executes the operation.
    ReserveInProgress,
    /// A request was refused because its key belongs to a different request: a bug of the client, or an attempt to guess keys.
    ReserveKeyMisuse,
    /// A request executes an operation again that is proved to have done nothing before.
    ReserveFailedRetry,
    /// A request was answered that the outcome is unknown, or that it cannot be compared with the first one.
    ReserveUnknown,
    /// The store failed a request or an owner's write, or did not answer it in time.
    StoreError,
    /// A lease ran out: a record was found in progress without a live owner, and was moved on. Counted once per lease.
    ZombieKey,
    /// The reaper removed a record, its tombstone's time being over.
    TtlPruned,
    /// An outcome became unknown, and a poll or a webhook is to settle it.
    ReconcileScheduled,
    /// Evidence settled an unknown outcome: a poll's, a webhook's or a person's.
    ReconcileResolved,
    /// An unknown outcome became a dead letter: the polls were used up, or there is neither poll nor webhook to settle it.
    ReconcileFailed,
    /// A request came without a key where one is required or could be given.
    MissingKey,
    /// A key came back after its window: refused, or taken as new work, as the policy says.
    ExpiredRetry,
    /// An operation was completed without naming the resource that it created.
    CompletedWithoutResource,
    /// A new key was refused: its tenant has as many as it may, or makes them too fast.
    QuotaRefused,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::ReserveCreated,
        Self::ReserveReplay,
        Self::ReserveInProgress,
        Self::ReserveKeyMisuse,
        Self::ReserveFailedRetry,
        Self::ReserveUnknown,
        Self::StoreError,
        Self::ZombieKey,
        Self::TtlPruned,
        Self::ReconcileScheduled,
        Self::ReconcileResolved,
        Self::ReconcileFailed,
        Self::MissingKey,
        Self::ExpiredRetry,
        Self::CompletedWithoutResource,
        Self::QuotaRefused,
    ];

    /// Its name, as metrics spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReserveCreated => "reserve_created",
            Self::ReserveReplay => "reserve_replay",
            Self::ReserveInProgress => "reserve_in_progress",
            Self::ReserveKeyMisuse => "reserve_key_misuse",
            Self::ReserveFailedRetry => "reserve_failed_retry",
            Self::ReserveUnknown => "reserve_unknown",
            Self::StoreError => "store_error",
            Self::ZombieKey => "zombie_key",
            Self::TtlPruned => "ttl_pruned",
            Self::ReconcileScheduled => "reconcile_scheduled",
            Self::ReconcileResolved => "reconcile_resolved",
            Self::ReconcileFailed => "reconcile_failed",
            Self::MissingKey => "missing_key",
            Self::ExpiredRetry => "expired_retry",
            Self::CompletedWithoutResource => "completed_without_resource",
            Self::QuotaRefused => "quota_refused",
        }
    }

    /// Its index in [`ALL`](Self::ALL), for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The event that a record shows that was just written.
    #[must_use]
    pub fn of_written(record: &Record) -> Option<Self> {
        match record.state {
            State::Unknown if record.dead_letter => Some(Self::ReconcileFailed),
            State::Unknown => Some(Self::ReconcileScheduled),
            State::Completed if record.resource.is_none() => Some(Self::CompletedWithoutResource),
            _ => None,
        }
    }
}

/// Logs an outcome that has just become unknown, and why. The writer of a doubt logs it, once: an operator may have to settle it.
pub(crate) fn log_doubt(
    operation_id: OperationId,
    attempt: u32,
    cause: &str,
    dead_letter: bool,
    detail: Option<&str>,
) {
    tracing::warn!(%operation_id, attempt, cause, dead_letter, detail, "outcome unknown");
}

/// Logs a record that has just become unknown. For code that writes records beside the engine.
pub fn log_doubt_of(record: &Record) {
    let cause = record.last_error.as_deref().unwrap_or("unknown");
    log_doubt(record.operation_id, record.attempt, cause, record.dead_letter, None);
}

/// A kind of call to the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum StoreCall {
    /// [`Store::create`](crate::Store::create)
    Create,
    /// [`Store::swap`](crate::Store::swap)
    Swap,
    /// [`Store::remove`](crate::Store::remove)
    Remove,
    /// [`Store::read`](crate::Store::read)
    Read,
    /// [`Store::find`](crate::Store::find)
    Find,
    /// [`Store::history`](crate::Store::history)
    History,
    /// [`Store::list`](crate::Store::list)
    List,
    /// [`Store::count_live`](crate::Store::count_live)
    CountLive,
    /// [`Store::live_operations`](crate::Store::live_operations)
    LiveOperations,
    /// [`Store::due`](crate::Store::due)
    Due,
    /// [`Store::drop_answers`](crate::Store::drop_answers)
    DropAnswers,
    /// [`Store::purge`](crate::Store::purge)
    Purge,
    /// [`Store::remember`](crate::Store::remember)
    Remember,
    /// [`Store::recall`](crate::Store::recall)
    Recall,
    /// [`Store::replace`](crate::Store::replace)
    Replace,
    /// [`Store::clock`](crate::Store::clock), to look at it
    Clock,
    /// [`Store::clock`](crate::Store::clock), to end a clock hold
    AcceptClock,
    /// [`Store::set_key_format`](crate::Store::set_key_format)
    SetKeyFormat,
    /// [`Store::audit`](crate::Store::audit)
    Audit,
    /// [`Store::audited`](crate::Store::audited)
    Audited,
    /// [`Store::purge_audit`](crate::Store::purge_audit)
    PurgeAudit,
}

impl StoreCall {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Create,
        Self::Swap,
        Self::Remove,
        Self::Read,
        Self::Find,
        Self::History,
        Self::List,
        Self::CountLive,
        Self::LiveOperations,
        Self::Due,
        Self::DropAnswers,
        Self::Purge,
        Self::Remember,
        Self::Recall,
        Self::Replace,
        Self::Clock,
        Self::AcceptClock,
        Self::SetKeyFormat,
        Self::Audit,
        Self::Audited,
        Self::PurgeAudit,
    ];

    /// Its index in [`ALL`](Self::ALL), for an array of measurements.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it may change what is stored. Without an answer it is unknown whether it did.
    #[must_use]
    pub const fn writes(self) -> bool {
        match self {
            Self::Create
            | Self::Swap
            | Self::Remove
            | Self::DropAnswers
            | Self::Purge
            | Self::Remember
            | Self::Replace
            | Self::AcceptClock
            | Self::SetKeyFormat
            | Self::Audit
            | Self::PurgeAudit => true,
            Self::Read
            | Self::Find
            | Self::History
            | Self::List
            | Self::CountLive
            | Self::LiveOperations
            | Self::Due
            | Self::Recall
            | Self::Clock
            | Self::Audited => false,
        }
    }

    /// Its name, as metrics spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Swap => "swap",
            Self::Remove => "remove",
            Self::Read => "read",
            Self::Find => "find",
            Self::History => "history",
            Self::List => "list",
            Self::CountLive => "count_live",
            Self::LiveOperations => "live_operations",
            Self::Due => "due",
            Self::DropAnswers => "drop_answers",
            Self::Purge => "purge",
            Self::Remember => "remember",
            Self::Recall => "recall",
            Self::Replace => "replace",
            Self::Clock => "clock",
            Self::AcceptClock => "accept_clock",
            Self::SetKeyFormat => "set_key_format",
            Self::Audit => "audit",
            Self::Audited => "audited",
            Self::PurgeAudit => "purge_audit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_has_its_place_and_a_name_of_its_own() {
        for (place, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event.index(), place);
        }
        for (place, call) in StoreCall::ALL.into_iter().enumerate() {
            assert_eq!(call.index(), place);
        }
        let names: std::collections::HashSet<_> = Event::ALL.map(Event::as_str).into();
        assert_eq!(names.len(), Event::ALL.len());
    }
}
