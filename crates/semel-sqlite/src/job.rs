//! What the writer is asked to do.

use crate::clock::{MARKED, StoreClock};
use crate::error::Fault;
use crate::fence::Fence;
use crate::{audit, key_format, statements};
use bytes::Bytes;
use rusqlite::Connection;
use semel::audit::AuditEntry;
use semel::clock::{Mark, Told};
use semel::columns::{KeyHash, key_hash};
use semel::{
    Answer, Created, Draft, Expected, KeyFormat, KeyFormatSet, Now, Purged, Respell, StoreError, Swap,
    Swapped, Timestamp,
};
use std::cell::Cell;
use std::time::Duration;
use tokio::sync::oneshot;

/// The transaction that a job runs in.
pub(crate) struct Scope<'a> {
    pub(crate) conn: &'a Connection,
    pub(crate) now: Now,
    /// What was judged of the clock, and what the file is to say of it.
    pub(crate) told: Told,
    pub(crate) row: Mark,
    pub(crate) mark: Cell<Mark>,
    pub(crate) clock: &'a StoreClock,
    pub(crate) fence: &'a Fence,
}

/// A job for the writer's transaction, with the channel of its caller.
pub(crate) trait Job: Send {
    /// Whether the caller still waits. A job without a caller is not begun: a caller whose time ran out before that
    /// knows that nothing was written.
    fn wanted(&self) -> bool;

    /// How many items it brings to the transaction.
    fn items(&self) -> usize;

    /// Whether it can be done again after a rollback. An application's closure cannot.
    fn repeatable(&self) -> bool;

    /// Whether it stamps or judges anything by the time, and so cannot be done by a clock that is wrong.
    fn goes_by_time(&self) -> bool {
        true
    }

    /// Does it, and says whether anything was written.
    fn run(&mut self, scope: &Scope<'_>) -> Result<bool, Fault>;

    /// Sends the caller the result of [`run`](Self::run), now that the transaction is durable.
    fn committed(self: Box<Self>, now: Now);

    /// Sends the caller the error: nothing was written, or that is unknown.
    fn failed(self: Box<Self>, error: StoreError);
}

/// The caller's end of a job.
pub(crate) type Waiting<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A batch of one kind: items, what became of them, and who waits.
struct Batch<I, O, F> {
    input: I,
    length: usize,
    run: F,
    outcome: Option<Vec<O>>,
    answer: oneshot::Sender<Result<Answer<O>, StoreError>>,
}

impl<I, O, F> Job for Batch<I, O, F>
where
    I: Send,
    O: Send + Wrote,
    F: Fn(&Connection, &I, Now) -> Result<Vec<O>, Fault> + Send,
{
    fn wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn items(&self) -> usize {
        self.length
    }

    fn repeatable(&self) -> bool {
        true
    }

    fn run(&mut self, scope: &Scope<'_>) -> Result<bool, Fault> {
        let outcome = (self.run)(scope.conn, &self.input, scope.now)?;
        let wrote = outcome.iter().any(Wrote::wrote);
        self.outcome = Some(outcome);
        Ok(wrote)
    }

    fn committed(self: Box<Self>, now: Now) {
        if let Some(items) = self.outcome {
            let _gone = self.answer.send(Ok(Answer::at(now, items)));
        }
    }

    fn failed(self: Box<Self>, error: StoreError) {
        let _gone = self.answer.send(Err(error));
    }
}

/// Whether an item's outcome means that something was written.
trait Wrote {
    fn wrote(&self) -> bool;
}

impl Wrote for Created {
    fn wrote(&self) -> bool {
        *self == Self::Inserted
    }
}

/// When an answer ended that was dropped.
impl Wrote for Timestamp {
    fn wrote(&self) -> bool {
        true
    }
}

impl Wrote for Purged {
    fn wrote(&self) -> bool {
        true
    }
}

impl Wrote for Swapped {
    fn wrote(&self) -> bool {
        *self == Self::Done
    }
}

fn batch<I, O, F>(input: I, length: usize, run: F) -> (Box<dyn Job>, Waiting<Answer<O>>)
where
    I: Send + 'static,
    O: Send + Wrote + 'static,
    F: Fn(&Connection, &I, Now) -> Result<Vec<O>, Fault> + Send + 'static,
{
    let (answer, waiting) = oneshot::channel();
    (Box::new(Batch { input, length, run, outcome: None, answer }), waiting)
}

pub(crate) fn create(drafts: Vec<Draft>) -> (Box<dyn Job>, Waiting<Answer<Created>>) {
    // Hashed on the caller's thread: there are many of those, and one writer.
    let hashes: Vec<KeyHash> = drafts.iter().map(|draft| key_hash(&draft.key)).collect();
    let length = drafts.len();
    batch((drafts, hashes), length, |conn, (drafts, hashes), now| {
        statements::create(conn, drafts, hashes, now)
    })
}

pub(crate) fn swap(swaps: Vec<Swap>) -> (Box<dyn Job>, Waiting<Answer<Swapped>>) {
    let length = swaps.len();
    batch(swaps, length, |conn, swaps, now| statements::swap(conn, swaps, now))
}

pub(crate) fn remove(expected: Vec<Expected>) -> (Box<dyn Job>, Waiting<Answer<Swapped>>) {
    let length = expected.len();
    batch(expected, length, |conn, expected, _now| {
        expected.iter().map(|expected| statements::remove(conn, expected)).collect()
    })
}

/// Appends to the audit, with the change that it is about.
pub(crate) fn audit(entry: AuditEntry, change: Option<Swap>) -> (Box<dyn Job>, Waiting<Answer<Swapped>>) {
    batch((entry, change), 1, |conn, (entry, change), now| audit::write(conn, entry, change.as_ref(), now))
}

/// Removes what is old of the audit.
pub(crate) fn purge_audit(older_than: Duration, at_most: usize) -> (Box<dyn Job>, Waiting<u64>) {
    single(true, move |conn, now| audit::purge(conn, older_than, at_most, now))
}

pub(crate) fn drop_answers(at_most: usize) -> (Box<dyn Job>, Waiting<Answer<Timestamp>>) {
    batch(at_most, 1, |conn, at_most, now| statements::drop_answers(conn, *at_most, now))
}

pub(crate) fn purge(at_most: usize) -> (Box<dyn Job>, Waiting<Answer<Purged>>) {
    batch(at_most, 1, |conn, at_most, now| statements::purge(conn, *at_most, now))
}

/// One thing that is neither a batch nor a closure of the application's.
struct Single<T, F> {
    run: F,
    goes_by_time: bool,
    outcome: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Job for Single<T, F>
where
    T: Send,
    F: Fn(&Connection, Now) -> Result<(T, bool), Fault> + Send,
{
    fn wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn items(&self) -> usize {
        1
    }

    fn repeatable(&self) -> bool {
        true
    }

    fn goes_by_time(&self) -> bool {
        self.goes_by_time
    }

    fn run(&mut self, scope: &Scope<'_>) -> Result<bool, Fault> {
        let (outcome, written) = (self.run)(scope.conn, scope.now)?;
        self.outcome = Some(outcome);
        Ok(written)
    }

    fn committed(self: Box<Self>, _now: Now) {
        if let Some(outcome) = self.outcome {
            let _gone = self.answer.send(Ok(outcome));
        }
    }

    fn failed(self: Box<Self>, error: StoreError) {
        let _gone = self.answer.send(Err(error));
    }
}

fn single<T, F>(goes_by_time: bool, run: F) -> (Box<dyn Job>, Waiting<T>)
where
    T: Send + 'static,
    F: Fn(&Connection, Now) -> Result<(T, bool), Fault> + Send + 'static,
{
    let (answer, waiting) = oneshot::channel();
    (Box::new(Single { run, goes_by_time, outcome: None, answer }), waiting)
}

/// Keeps a value under a name.
pub(crate) fn remember(name: String, value: Bytes) -> (Box<dyn Job>, Waiting<Bytes>) {
    single(false, move |conn, _now| statements::remember(conn, &name, &value))
}

/// Replaces a value under a name.
pub(crate) fn replace(name: String, expected: Bytes, value: Bytes) -> (Box<dyn Job>, Waiting<Option<Bytes>>) {
    single(false, move |conn, _now| key_format::replace(conn, &name, &expected, &value))
}

/// Puts a format of client keys in force.
pub(crate) fn set_key_format(
    format: KeyFormat,
    respell: Option<Respell>,
) -> (Box<dyn Job>, Waiting<KeyFormatSet>) {
    single(true, move |conn, now| key_format::set(conn, &format, respell.as_ref(), now))
}

/// Looks at the clock: leaves a mark in the file if the last one is half a minute old, and ends a clock hold, if that may be or is asked for.
struct LookAtClock {
    accept: bool,
    answer: oneshot::Sender<Result<(), StoreError>>,
}

impl Job for LookAtClock {
    // The ticker does not wait for an answer, but wants the job done.
    fn wanted(&self) -> bool {
        true
    }

    fn items(&self) -> usize {
        0
    }

    fn repeatable(&self) -> bool {
        true
    }

    fn run(&mut self, scope: &Scope<'_>) -> Result<bool, Fault> {
        let is_synchronised = scope.clock.is_synchronised();
        if scope.now.is_held() && (self.accept || is_synchronised) {
            scope.mark.set(scope.clock.accepting(&scope.told));
            return Ok(true);
        }
        // A file that nothing was ever written to has nothing to remember. Of several processes one does it: a mark of half a minute is fresh
        // enough for the others, and the next look at one that is older may be a minute away.
        let age = scope.told.mark.at.saturating_sub(scope.row.at).unsigned_abs();
        Ok(scope.row.at > 0 && u128::from(age) >= MARKED.as_millis() / 2)
    }

    fn committed(self: Box<Self>, _now: Now) {
        let _gone = self.answer.send(Ok(()));
    }

    fn failed(self: Box<Self>, error: StoreError) {
        let _gone = self.answer.send(Err(error));
    }
}

pub(crate) fn clock_job(accept: bool) -> (Box<dyn Job>, Waiting<()>) {
    let (answer, waiting) = oneshot::channel();
    (Box::new(LookAtClock { accept, answer }), waiting)
}
