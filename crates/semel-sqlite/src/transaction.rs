//! An application's statements in the store's own transaction.

use crate::audit;
use crate::error::{ActError, Fault, TransactionError, unavailable};
use crate::fence::{OPEN, RELEASE, UNDO};
use crate::job::{Job, Scope};
use crate::same_transaction::{self, Reserved};
use rusqlite::Connection;
use semel::audit::AuditEntry;
use semel::transition::{Act, Claim};
use semel::{Draft, Now, Record, StoreError, Timestamp};
use std::any::Any;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::sync::oneshot;

/// The store's transaction, lent to an application's closure. It is a [`rusqlite::Connection`] for domain statements, and acts
/// on records beside them: all of it commits together, or vanishes together.
///
/// The transaction is not the closure's to end: `BEGIN`, `COMMIT` and `ROLLBACK` are refused. Savepoints are fine.
pub struct Transaction<'c> {
    conn: &'c Connection,
    now: Now,
}

impl Transaction<'_> {
    /// The store's now: the earliest time that it may be. All moments that this transaction writes count from it, but for windows, which
    /// count from the latest.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now.earliest
    }

    /// The same, with the latest time that it may be. Stamp by that what must not be over too early, as marks of what was done.
    #[must_use]
    pub fn moment(&self) -> Now {
        self.now
    }

    /// Reserves the key of `draft` if it is free; otherwise returns the record that is there.
    ///
    /// # Errors
    /// [`ActError::Store`] or [`ActError::Sqlite`]; nothing was reserved.
    pub fn reserve(&self, draft: Draft) -> Result<Reserved, ActError> {
        same_transaction::reserve(self.conn, draft, self.now)
    }

    /// Appends an entry to the audit.
    ///
    /// # Errors
    /// What SQLite says; nothing was appended.
    pub fn audit(&self, entry: &AuditEntry) -> rusqlite::Result<()> {
        audit::append(self.conn, entry, self.now)
    }

    /// The owner acts on its record: completes, fails, advances, …. The record as it is then; `None`: it was removed.
    ///
    /// # Errors
    /// [`ActError::Refused`] if the claim does not hold any more. Pass it on with `?`: the domain statements must not commit.
    pub fn act(&self, claim: &Claim, act: &Act) -> Result<Option<Record>, ActError> {
        same_transaction::act(self.conn, claim, act, self.now)
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn
    }
}

/// A closure, what it came to, and who waits.
pub(crate) struct Closure<F, T, E> {
    work: Option<F>,
    outcome: Option<Result<T, TransactionError<E>>>,
    answer: oneshot::Sender<Result<T, TransactionError<E>>>,
}

/// The caller's end of a closure.
pub(crate) type ClosureWaiting<T, E> = oneshot::Receiver<Result<T, TransactionError<E>>>;

pub(crate) fn closure<F, T, E>(work: F) -> (Box<dyn Job>, ClosureWaiting<T, E>)
where
    F: FnOnce(&Transaction<'_>) -> Result<T, TransactionError<E>> + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    let (answer, waiting) = oneshot::channel();
    (Box::new(Closure { work: Some(work), outcome: None, answer }), waiting)
}

impl<F, T, E> Job for Closure<F, T, E>
where
    F: FnOnce(&Transaction<'_>) -> Result<T, TransactionError<E>> + Send,
    T: Send,
    E: Send,
{
    fn wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn items(&self) -> usize {
        1
    }

    fn repeatable(&self) -> bool {
        false
    }

    fn run(&mut self, scope: &Scope<'_>) -> Result<bool, Fault> {
        let Some(work) = self.work.take() else {
            return Err(Fault::Job(StoreError::Unavailable("a closure cannot run twice".into())));
        };
        let conn = scope.conn;
        let savepoint = |words: &str| -> Result<(), Fault> {
            conn.prepare_cached(words)?.execute([]).map(drop).map_err(Fault::Group)
        };
        savepoint(OPEN)?;
        let transaction = Transaction { conn, now: scope.now };
        scope.fence.closed(true);
        // What a panic may have left half done is in the savepoint, which is rolled back.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&transaction)))
            .unwrap_or_else(|panic| Err(TransactionError::Panicked(words_of(&*panic))));
        scope.fence.closed(false);
        let wrote = outcome.is_ok();
        let outcome = self.outcome.insert(outcome);
        if conn.is_autocommit() {
            // Behind the fence only SQLite itself can have ended the transaction: it rolled it back, as it may for a full disk.
            return Ok(false);
        }
        if outcome.is_err() {
            savepoint(UNDO)?;
        }
        savepoint(RELEASE)?;
        Ok(wrote)
    }

    fn committed(self: Box<Self>, _now: Now) {
        if let Some(outcome) = self.outcome {
            let _gone = self.answer.send(outcome);
        }
    }

    fn failed(self: Box<Self>, error: StoreError) {
        // A closure that gave up wrote nothing, whatever became of the others.
        let outcome = match self.outcome {
            Some(Err(own)) => own,
            _ => TransactionError::Store(error),
        };
        let _gone = self.answer.send(Err(outcome));
    }
}

/// What runs an application's closure, and then the act that it returns, on behalf of `claim`.
pub(crate) fn finishing<F, T, E>(
    claim: Claim,
    work: F,
) -> impl FnOnce(&Transaction<'_>) -> Result<(T, Option<Record>), TransactionError<E>>
where
    F: FnOnce(&Transaction<'_>) -> Result<(T, Act), E>,
{
    move |transaction| {
        let (value, act) = work(transaction).map_err(TransactionError::Application)?;
        match transaction.act(&claim, &act) {
            Ok(record) => Ok((value, record)),
            Err(ActError::Refused(refusal)) => Err(TransactionError::Refused(refusal)),
            Err(ActError::Store(error)) => Err(TransactionError::Store(error)),
            Err(ActError::Sqlite(error)) => Err(TransactionError::Store(unavailable(&error))),
            Err(error) => Err(TransactionError::Store(StoreError::Unavailable(error.to_string()))),
        }
    }
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(ToString::to_string);
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
