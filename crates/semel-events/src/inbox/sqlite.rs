//! The inbox in a SQLite file, beside the application's own tables.

use super::identity::{self, InvalidIdentity, MessageId};
use super::outcome::{Handled, InboxError};
use super::retention::{BATCH, Forgotten, PAUSE, Retention, millis};
use rusqlite::Connection;
use semel::{Now, StoreError};
use semel_sqlite::{ActError, SqliteStore, Transaction, TransactionError};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The inbox of one consumer, in the file that the consumer writes to.
///
/// ```
/// use semel_events::inbox::{Handled, MessageId, SqliteInbox};
/// use semel_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("ledger.db");
/// let store = SqliteStore::open(path).await?;
/// store.transaction(|tx| tx.execute_batch("CREATE TABLE ledger (payment TEXT)")).await?;
/// let inbox = SqliteInbox::new(store, "ledger")?;
/// let id = MessageId::new("an id of the sender's")?;
/// let enter = |tx: &semel_sqlite::Transaction<'_>| tx.execute("INSERT INTO ledger VALUES ('pay_1')", []);
///
/// assert_eq!(inbox.handle(&id, enter).await?, Handled::Now(1));
/// assert_eq!(inbox.handle(&id, enter).await?, Handled::Before);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct SqliteInbox {
    store: SqliteStore,
    consumer: Arc<str>,
    retention: Retention,
}

const MARK_MESSAGE: &str =
    "INSERT INTO semel_inbox (consumer, message_id, marked_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const MARK_EFFECT: &str = "INSERT INTO semel_inbox_effects (consumer, effect, marked_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
const FORGET_MESSAGES: &str = "DELETE FROM semel_inbox WHERE (consumer, message_id) IN (
    SELECT consumer, message_id FROM semel_inbox WHERE consumer = ?1 AND marked_at <= ?2 ORDER BY marked_at LIMIT ?3)";
const FORGET_EFFECTS: &str = "DELETE FROM semel_inbox_effects WHERE (consumer, effect) IN (
    SELECT consumer, effect FROM semel_inbox_effects WHERE consumer = ?1 AND marked_at <= ?2 ORDER BY marked_at LIMIT ?3)";

impl SqliteInbox {
    /// The inbox of the consumer of this name. Consumers of different names handle the same message once each.
    ///
    /// # Errors
    /// The name cannot be one.
    pub fn new(store: SqliteStore, consumer: impl Into<String>) -> Result<Self, InvalidIdentity> {
        let consumer = consumer.into();
        identity::check("a consumer's name", &consumer)?;
        Ok(Self { store, consumer: consumer.into(), retention: Retention::default() })
    }

    /// Keeps marks for so long.
    #[must_use]
    pub fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Runs `work` for this message, unless it was handled before: its statements and the mark are one commit. Everybody's writes wait
    /// while it runs: it should do its statements and nothing else.
    ///
    /// # Errors
    /// The message is not handled, or (with [`StoreError::Lost`]) it is not known: do not acknowledge it, and the next delivery finds out.
    pub async fn handle<T, E, F>(&self, message: &MessageId, work: F) -> Result<Handled<T>, InboxError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.once(MARK_MESSAGE, message.as_str(), work).await
    }

    /// Marks the message in the open write transaction of a connection of the application's own, which has to commit the effects with
    /// it. Whether it is the first time: if not, there is nothing to do, and the transaction can be rolled back.
    ///
    /// # Errors
    /// The connection is not fit for it, or SQLite's own. Roll the transaction back.
    pub fn mark_in(&self, conn: &Connection, message: &MessageId) -> Result<bool, ActError> {
        let now = semel_sqlite::moment_in(conn)?;
        Ok(mark(conn, MARK_MESSAGE, &self.consumer, message.as_str(), now)?)
    }

    /// Begins with a message that has several effects; `None` if it was handled before.
    ///
    /// # Errors
    /// [`InboxError::Store`]: the file could not be read.
    pub async fn steps<E>(&self, message: &MessageId) -> Result<Option<SqliteSteps<'_>>, InboxError<E>> {
        let (consumer, id) = (Arc::clone(&self.consumer), message.clone());
        let asking = move |tx: &Transaction<'_>| {
            let sql = "SELECT EXISTS (SELECT 1 FROM semel_inbox WHERE consumer = ?1 AND message_id = ?2)";
            tx.prepare_cached(sql)?.query_row((&*consumer, id.as_str()), |row| row.get(0))
        };
        let handled: bool =
            self.store.transaction(asking).await.map_err(|error| no_closure(error, unavailable))?;
        Ok((!handled).then(|| SqliteSteps { inbox: self, message: message.clone() }))
    }

    /// Forgets marks whose time is over, in small batches; during a clock hold, none.
    ///
    /// # Errors
    /// The store did not answer. What was forgotten before stays so.
    pub async fn forget(&self) -> Result<Forgotten, StoreError> {
        let Retention { messages, effects } = self.retention;
        Ok(Forgotten {
            messages: self.forget_from(FORGET_MESSAGES, messages).await?,
            effects: self.forget_from(FORGET_EFFECTS, effects).await?,
        })
    }

    async fn once<T, E, F>(
        &self,
        marking: &'static str,
        id: &str,
        work: F,
    ) -> Result<Handled<T>, InboxError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let (consumer, id) = (Arc::clone(&self.consumer), id.to_owned());
        let once = move |tx: &Transaction<'_>| {
            let first = mark(tx, marking, &consumer, &id, tx.moment());
            if !first.map_err(|error| InboxError::Store(unavailable(error)))? {
                return Ok(Handled::Before);
            }
            work(tx).map(Handled::Now).map_err(InboxError::Application)
        };
        self.store.transaction(once).await.map_err(|error| no_closure(error, |error| error))
    }

    async fn forget_from(&self, forgetting: &'static str, kept: Duration) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let (begun, consumer) = (Instant::now(), Arc::clone(&self.consumer));
            let work = move |tx: &Transaction<'_>| {
                // Marks are as old as they look only once it is known what time it is.
                if tx.moment().is_held() {
                    return Ok(0);
                }
                let until = tx.now().as_millis().saturating_sub(millis(kept));
                tx.prepare_cached(forgetting)?.execute((&*consumer, until, BATCH))
            };
            let done = self.store.transaction(work).await;
            let done = done.map_err(|error| match no_closure::<Infallible, _>(error, unavailable) {
                InboxError::Store(error) => error,
                other => StoreError::Unavailable(other.to_string()),
            })?;
            forgotten += done as u64;
            if done < BATCH as usize {
                return Ok(forgotten);
            }
            tokio::time::sleep(PAUSE.max(begun.elapsed())).await;
        }
    }
}

/// A message with several effects, each in a transaction of its own. Killed anywhere, the next delivery goes on after the last effect
/// that was committed.
#[derive(Debug)]
#[must_use = "a message is handled once `finish` has marked it"]
pub struct SqliteSteps<'i> {
    inbox: &'i SqliteInbox,
    message: MessageId,
}

impl SqliteSteps<'_> {
    /// Runs `work`, unless this effect is done: its statements and the effect's mark are one commit. `identity` names the effect by what it
    /// is about, as `ledger_payment_pay_789`; it is the consumer's own, and the same whichever message asks for it.
    ///
    /// # Errors
    /// The effect is not done, or (with [`StoreError::Lost`]) it is not known. Effects before it stay done.
    pub async fn effect<T, E, F>(&self, identity: &str, work: F) -> Result<Handled<T>, InboxError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        identity::check("an effect's identity", identity)?;
        self.inbox.once(MARK_EFFECT, identity, work).await
    }

    /// Marks the message, after its last effect.
    ///
    /// # Errors
    /// As there. What is done stays done; the next delivery passes over it and marks.
    pub async fn finish<E: Send + 'static>(self) -> Result<(), InboxError<E>> {
        let marked = self.inbox.once(MARK_MESSAGE, self.message.as_str(), |_| Ok(())).await?;
        let (Handled::Now(()) | Handled::Before) = marked;
        Ok(())
    }
}

/// Writes the mark; false: it is there. The write lock is the caller's: nobody else is at it. It is stamped by the latest time that it may be,
/// so that it is not old at once where that turns out to be the right one.
fn mark(conn: &Connection, marking: &str, consumer: &str, id: &str, now: Now) -> rusqlite::Result<bool> {
    Ok(conn.prepare_cached(marking)?.execute((consumer, id, now.latest.as_millis()))? == 1)
}

fn unavailable<E>(error: rusqlite::Error) -> E
where
    StoreError: Into<E>,
{
    StoreError::Unavailable(error.to_string()).into()
}

/// What became of the transaction, where what the closure itself says comes to `own`.
fn no_closure<E, C>(error: TransactionError<C>, own: impl FnOnce(C) -> InboxError<E>) -> InboxError<E> {
    match error {
        TransactionError::Application(error) => own(error),
        TransactionError::Store(error) => InboxError::Store(error),
        other => InboxError::Refused(other.to_string()),
    }
}
