//! What operators see of an outbox, and can do about it.

use crate::message::Event;
use semel::audit::AuditEntry;
use semel::{StoreFuture, Timestamp};
use std::time::Duration;
use uuid::Uuid;

/// The events of one store that are not published yet, for operators.
pub trait OutboxAdmin: Send + Sync + 'static {
    /// How much there is to be published.
    fn stats(&self) -> StoreFuture<'_, OutboxStats>;

    /// Some events, latest id first, without their payloads. `before`: those after the last one of the page before.
    fn list(&self, filter: EntryFilter, before: Option<Uuid>, limit: usize) -> StoreFuture<'_, EntryPage>;

    /// The event of this id, with its payload, and the store's now.
    fn find(&self, id: Uuid) -> StoreFuture<'_, (Timestamp, Option<Entry>)>;

    /// Sends an event on its way again that was refused, with all its attempts before it: a dead letter, or one that waits to be
    /// tried again. Those behind it follow. The entry is appended to the audit in the same commit.
    fn requeue(&self, id: Uuid, audit: Option<AuditEntry>) -> StoreFuture<'_, Touched>;

    /// Takes an event out that was refused, for ever, and keeps who did it and why. Those behind it follow. The entry is appended to the
    /// audit in the same commit.
    fn discard(
        &self,
        id: Uuid,
        by: String,
        reason: String,
        audit: Option<AuditEntry>,
    ) -> StoreFuture<'_, Touched>;
}

/// How much there is to be published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutboxStats {
    /// Events that are not published yet, dead letters and those behind them among them; beyond a million: a million.
    pub backlog: u64,
    /// The age of the oldest event that could be published by now, or is to be tried again. Dead letters, and what waits behind
    /// them, do not count.
    pub oldest: Duration,
    /// Events that wait for an operator.
    pub dead_letters: u64,
}

/// Beyond so many events the backlog is not counted.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) const MOST_COUNTED: i64 = 1_000_000;

/// Which events to list. All that is given has to hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EntryFilter {
    /// Only dead letters, or only others.
    pub dead_letter: Option<bool>,
    /// Only of this aggregate.
    pub aggregate: Option<String>,
    /// Only of this kind.
    pub kind: Option<String>,
}

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryPage {
    /// The store's now.
    pub now: Timestamp,
    /// The events, without their payloads.
    pub entries: Vec<Entry>,
    /// Whether there are more.
    pub more: bool,
}

/// An event that is not published yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The event; in listings without its payload.
    pub event: Event,
    /// When it was appended.
    pub created: Timestamp,
    /// How often the receiver refused it.
    pub attempts: u32,
    /// What the receiver said the last time.
    pub last_error: Option<String>,
    /// Whether it waits because it was refused, or one of its aggregate before it.
    pub parked: bool,
    /// When it is tried again, if it was refused and is no dead letter.
    pub retry: Option<Timestamp>,
    /// Whether it waits for an operator.
    pub dead_letter: bool,
}

/// What became of an operator's act.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Touched {
    /// It is done. For a requeued event, as it is now; for one that was taken out, as it was.
    Done(Box<Entry>),
    /// It was never refused, or waits behind another one; nothing was done.
    NotRefused(Box<Entry>),
    /// There is no such event: it was published, or never was.
    Missing,
}
