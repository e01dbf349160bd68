//! What a store has to do: create, swap, remove and read, in batches.

mod batches;
mod bounded;
mod call;
pub mod cas;
mod damage;
mod handle;
mod memory;

pub use bounded::{Access, bounded};
pub use damage::DamageLog;
pub use handle::StoreHandle;
pub use memory::{ManualClock, MemoryStore};

use crate::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use crate::clock::{ClockReport, ClockRequest};
use crate::history::{HistoryEntry, HistoryLine};
use crate::identity::{KeyScope, OperationId, RecordKey};
use crate::record::{Body, Draft, DueKind, Expected, Record, State};
use crate::time::{Now, Timestamp};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// The future of a store's call.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// An answer, and what time it was by the store's clock when it was found. All moments in what was written count from it: windows from
/// `latest`, everything else from `now`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<T> {
    /// The store's now: the earliest time that it may be, by which everything is judged.
    pub now: Timestamp,
    /// The latest time that it may be. Equal to `now` unless a clock hold is open.
    pub latest: Timestamp,
    /// How long the store's clock has run without a step, by the judge's own steady clock. See [`Now::steady`].
    pub steady: Duration,
    /// What `now` was when it began to run so. See [`Now::since`].
    pub since: Timestamp,
    /// One result per item asked for, in the same order (or, for a listing, what was found).
    pub items: Vec<T>,
}

impl<T> Answer<T> {
    /// An answer at this time.
    #[must_use]
    pub fn at(now: impl Into<Now>, items: Vec<T>) -> Self {
        let Now { earliest, latest, steady, since } = now.into();
        Self { now: earliest, latest, steady, since, items }
    }

    /// When it was found.
    #[must_use]
    pub const fn moment(&self) -> Now {
        Now { earliest: self.now, latest: self.latest, steady: self.steady, since: self.since }
    }
}

/// What became of a [`create`](Store::create).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Created {
    /// No record had that key: the draft was written, its times counted from the answer's `now`.
    Inserted,
    /// This record exists already; nothing was written.
    Exists(Box<Record>),
    /// An open transaction holds the key; nothing was written, and nothing can be read. Treat it as in progress.
    Locked,
    /// What is there cannot be what was written, and this says why; nothing was written.
    Damaged(String),
}

/// A conditional write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Swap {
    /// The expected record.
    pub expected: Expected,
    /// The record that replaces it.
    pub next: Box<Draft>,
    /// Lines that are appended to the history in the same commit.
    pub history: Option<HistoryEntry>,
}

/// Refuses a draft that no correct caller passes, before the rest of its batch is affected.
///
/// # Errors
/// The draft is of a record that was read without its body, or its version is beyond what databases count to.
pub fn check_draft(draft: &Draft) -> Result<(), StoreError> {
    if draft.response.as_ref().is_some_and(|response| response.body == Body::Omitted) {
        return Err(programming_error("a record that was read without its body cannot be written"));
    }
    if i64::try_from(draft.version).is_err() {
        return Err(programming_error("the version exceeds what databases can store"));
    }
    Ok(())
}

impl Swap {
    /// Refuses a swap that no correct caller passes, as [`check_draft`] does for drafts.
    ///
    /// # Errors
    /// The record would become another one, its version would not rise, or the draft is not to be written.
    pub fn check(&self) -> Result<(), StoreError> {
        check_draft(&self.next)?;
        if self.next.key != self.expected.key || self.next.operation_id != self.expected.operation_id {
            return Err(programming_error("a swap cannot change a record's key or operation id"));
        }
        if self.next.version <= self.expected.version {
            return Err(programming_error("a swap must raise the version"));
        }
        Ok(())
    }
}

fn programming_error(what: &str) -> StoreError {
    StoreError::Unavailable(format!("a programming error: {what}"))
}

/// What became of a [`swap`](Store::swap) or a [`remove`](Store::remove).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Swapped {
    /// The expected record was there; done.
    Done,
    /// Another record is there; nothing was done.
    Changed(Box<Record>),
    /// No record is there; nothing was done.
    Missing,
    /// An open transaction holds the record; nothing was done.
    Locked,
    /// Something else is there that cannot be what was written, and this says why; nothing was done.
    Damaged(String),
}

/// Which records to list. Conditions are combined with AND.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Only this state, as it is at the store's now ([`state_at`](crate::transition::state_at)).
    pub state: Option<State>,
    /// Only this tenant's.
    pub tenant: Option<String>,
    /// Only this operation's, whatever the scope of its keys is.
    pub operation: Option<String>,
    /// Only of this client key.
    pub key: Option<String>,
    /// Only dead letters, or only others.
    pub dead_letter: Option<bool>,
    /// Only created at this moment or later.
    pub created_from: Option<Timestamp>,
    /// Only created before this moment.
    pub created_until: Option<Timestamp>,
    /// Oldest first, in place of newest first.
    pub oldest_first: bool,
}

impl Filter {
    /// By how much creations may be out of their order in a store that numbers records before it knows their time.
    #[doc(hidden)]
    pub const OUT_OF_ORDER: Duration = Duration::from_secs(60);
}

/// One page of a listing, bodies and headers left out ([`Body::Omitted`](crate::Body::Omitted)).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// How many damaged records were skipped on this page. Each is logged once.
    pub damaged: usize,
    /// Where the next page begins; `None`: this was the last.
    pub next: Option<Cursor>,
}

/// A position in a listing, as text. Opaque to everyone but the store that made it: nobody else reads, compares or makes one.
///
/// It goes to clients and comes back from them, so a store refuses what it did not make with [`StoreError::InvalidCursor`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cursor(Arc<str>);

impl Cursor {
    /// The longest text that a store makes.
    pub const LONGEST: usize = 256;

    /// The cursor that a store, or a client that was given it, spells so.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// How it is spelled.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The cursor of a store that numbers its records.
    #[must_use]
    pub fn of_place(place: i64) -> Self {
        Self::new(format!("{:016x}", place.cast_unsigned()))
    }

    /// The number that [`of_place`](Self::of_place) was given.
    ///
    /// # Errors
    /// [`StoreError::InvalidCursor`] if it was not made by it.
    pub fn place(&self) -> Result<i64, StoreError> {
        let is_spelled_so = self.0.len() == 16 && self.0.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = is_spelled_so.then(|| u64::from_str_radix(&self.0, 16).ok()).flatten();
        bits.map(u64::cast_signed).ok_or(StoreError::InvalidCursor)
    }
}

/// Which records have something due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueQuery {
    /// What is due.
    pub kind: DueKind,
    /// Only what comes after this place in the order of (moment, operation id): lets a caller pass over what it leaves be.
    pub after: Option<(Timestamp, OperationId)>,
    /// At most this many.
    pub limit: usize,
}

/// How many keys are live of each operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiveOperations {
    /// The operations with live keys, by name and scope.
    pub operations: BTreeMap<(String, KeyScope), u64>,
    /// Whether all records were looked at, for certain: there are fewer than could have been.
    pub is_all: bool,
}

/// A record that was purged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Purged {
    /// Its operation.
    pub operation: Arc<str>,
    /// When its time ended.
    pub since: Timestamp,
}

/// What every sealed client key begins with. It has a space in it, which no `Idempotency-Key` can have.
pub const SEALED_KEY: &str = "sealed 1:";

/// The format of client keys in a store. A store has one format, and refuses records of the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyFormat {
    /// As clients send them.
    Plain,
    /// Sealed: each begins with [`SEALED_KEY`](crate::seal::SEALED_KEY).
    Sealed {
        /// What they are sealed with, itself sealed by the keyring. Kept under [`Self::SECRET`].
        secret: Bytes,
    },
}

impl KeyFormat {
    /// The name that the secret of sealed keys is remembered under. Where there is one, keys are sealed.
    pub const SECRET: &str = "secret/client-keys";
    /// What the names of recipes begin with. Each is remembered before the first record that needs it: without one, a store was never used.
    pub const RECIPES: &str = "recipe/";
}

/// Writes a record in the other key format: the draft has another key, and is otherwise the record with its version raised.
pub type Respell = Arc<dyn Fn(&Record) -> Result<Box<Draft>, StoreError> + Send + Sync>;

/// What became of a [`set_key_format`](Store::set_key_format).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyFormatSet {
    /// This is the format now, with the secret that the store has.
    InForce(KeyFormat),
    /// The store was used in the other format, and no conversion was given; nothing was done.
    InUse,
    /// This many operations are in flight, whose owners name them by their current keys; nothing was done.
    UnderWay(u64),
    /// The store's user may not do this, and why; nothing was done.
    NotAllowed(String),
}

/// Why a call to the store failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing was written, for certain.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
    /// The answer was lost: it may or may not have been written.
    #[error("the store's answer was lost: {0}")]
    Lost(String),
    /// What is stored cannot be what was written; nothing was done. A record that a write meets is the outcome of its item instead.
    #[error("a stored record is damaged: {0}")]
    Damaged(String),
    /// A listing was to go on from a [`Cursor`] that this store did not make; nothing was done.
    #[error("the cursor is not one of this store's")]
    InvalidCursor,
}

/// A durable memory of records. Every store behind it passes the same conformance kit.
///
/// What must hold of every method:
/// - **Atomic per item, durable before it answers.** After an `Ok`, what was done survives a crash of process and machine.
///   A crash before the answer leaves each item either done whole or not at all.
/// - **Items of one batch are independent.** One that finds something unexpected, a damaged record among it, changes nothing for the
///   others. Two items of one record in one batch: at most one of them is done, and the other one gets the record that is there.
/// - **Never waits for a row that an open transaction holds**: such an item is `Locked`.
/// - **Time is the store's**: it never goes back, and instances that share a store share its time. A clock that jumps ahead is not
///   believed: the store then answers with two times ([`Answer::now`], [`Answer::latest`]), stamps windows from the latest, judges by
///   the earliest, and drops and purges nothing until its clock is trusted again.
/// - **Errors are whole.** [`StoreError::Unavailable`] only if no item was done; if anything may have been, it is
///   [`StoreError::Lost`], and the caller reads back.
///
/// No method has a default body: no store can weaken a promise by leaving one out.
pub trait Store: Send + Sync + 'static {
    /// Inserts each draft if there is no [record of its key](RecordKey::is_same_record); otherwise returns that record. One atomic step,
    /// without a read before it.
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>>;

    /// Replaces each record, and appends to its history, if operation id and version are the expected ones.
    ///
    /// `next` keeps the key and the operation id and raises the version; anything else is a programming error, refused for the
    /// whole batch with nothing done. So is a body that is [`Omitted`](crate::Body::Omitted), here and in [`create`](Self::create).
    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>>;

    /// Removes each record and its history, if operation id and version are the expected ones.
    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>>;

    /// The records of these keys. That of a key across all operations is found under any operation's name, and returned with its own.
    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>>;

    /// The records of these operation ids.
    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>>;

    /// The history of an operation, oldest first.
    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>>;

    /// Records by filter, in the order of their creation, newest first unless the filter says otherwise, without bodies and headers: a stored body is [`Omitted`](crate::Body::Omitted), and may
    /// be told as that when it was dropped since.
    ///
    /// A damaged record is skipped and counted ([`Page::damaged`]), so that operators see the others. It
    /// takes up a place on its page, so that `limit` bounds what is looked at.
    ///
    /// # Errors
    /// [`StoreError::InvalidCursor`], besides the others: `from` is not from this store.
    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page>;

    /// How many keys of a tenant are live: those of records in any state but [`Expired`](crate::State::Expired) at the latest time that
    /// it may be ([`state_at`](crate::transition::state_at)): a clock that is wrong must not use up a quota. Counts no further than `at_most`, by index.
    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64>;

    /// How many keys are live of each operation, among so many records that were created last, by the earliest time that it may be: sorted by
    /// operation, without those that have none.
    ///
    /// Looks at no more than `newest` records, and reads no answers. [`is_all`](LiveOperations::is_all) says whether there are fewer.
    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations>;

    /// Records that wait for something that is due by the store's now, earliest first, without bodies and headers.
    ///
    /// What waits for its removal ([`DueKind::Window`], [`DueKind::Purge`]) is not due while a clock hold is open.
    ///
    /// A damaged record is skipped and logged once: records behind it must
    /// not wait for its repair. It does not count towards the limit.
    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>>;

    /// Drops the bodies and headers of answers that are over by the store's now ([`answer_ends`](crate::Record::answer_ends)), those that
    /// ended first, at most `at_most`. Returns when each of them ended, in this order.
    ///
    /// Answers are stored apart from the records, in the order of their time, so that this touches no record: none is read or swapped
    /// for it, and its version stays. A record whose answer was dropped is read with a body that is [`Dropped`](crate::Body::Dropped),
    /// unless there was none; decisions go by the time, so they are the same before and after. Nothing is dropped while a clock hold is open.
    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>>;

    /// Removes records, with their histories, that wait for nothing but their removal ([`due`](crate::Record::due) says
    /// [`Purge`](crate::DueKind::Purge)), where the moment for it has come by the store's now: those first whose moment came first, at
    /// most `at_most`, in this order. A record that an open transaction holds stays.
    ///
    /// The state machine has decided already that the record may go, so it is not read and judged again. A store checks the
    /// record, all the same, and not by its index alone: where either says that the time has not come, or that it has not ended, it stays.
    /// Nothing is purged while a clock hold is open, which is looked at in the same commit.
    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>>;

    /// Keeps `value` under `name` unless there is one already; returns the one that is there in the end. Recipes and the secret
    /// of keyed hashes live here, so that all instances agree.
    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes>;

    /// What is kept under `name`.
    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>>;

    /// What time it is, whether the clock is trusted, and, if asked, an end to a clock hold: [`Accept`](ClockRequest::Accept) takes the
    /// time that the clock claims for the right one, on an operator's word. A crash before the answer leaves the hold open or ended.
    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport>;

    /// Replaces the value under `name` if it is `expected`; returns the one that is there in the end.
    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>>;

    /// Puts a format of client keys in force, in one atomic step. From then on the store itself refuses every new record of the other format, with
    /// [`StoreError::Unavailable`], wherever it comes from: another process, an older program, the application's own transaction.
    ///
    /// Where it is in force already, nothing is done. Without `respell` it is done only if the store was never used: it has no record, and no
    /// value whose name begins with [`KeyFormat::RECIPES`]. With it, every record is rewritten in the same step, unless one is
    /// in progress with a lease that is not over at the store's now. The secret is kept, or removed, in the same step too.
    ///
    /// It may take as long as all records together: it is not to be bounded by a time-out for single calls, where there is a `respell`.
    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet>;

    /// Appends an entry to the audit, and makes the change that it is about, if there is one, in the same commit: both are done, or neither.
    /// Without a change the entry alone is appended, and that is [`Done`](Swapped::Done). One item is returned.
    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>>;

    /// Entries of the audit by filter, newest first.
    ///
    /// A damaged entry is skipped and counted ([`AuditPage::damaged`]); it takes up a place on its page.
    fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, AuditPage>;

    /// Removes entries that are older than this by the store's now, the oldest first, at most `at_most`; how many. Nothing is removed
    /// while a clock hold is open.
    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64>;

    /// How many batches of one kind the store can work on at once to advantage.
    fn max_concurrent_batches(&self) -> usize;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_being_a_cursor() {
        for place in [0, 1, 1000, i64::MAX, -1, i64::MIN] {
            assert_eq!(Cursor::new(Cursor::of_place(place).as_str()).place().ok(), Some(place));
        }
        for text in
            ["", "1", "+00000000000003e8", "+0000000000003e8", "00000000000003eg", "00000000000003e80"]
        {
            assert!(matches!(Cursor::new(text).place(), Err(StoreError::InvalidCursor)), "{text}");
        }
    }
}
