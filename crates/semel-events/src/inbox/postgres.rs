//! The inbox in PostgreSQL, beside the application's own tables.

use super::identity::{self, InvalidIdentity, MessageId};
use super::outcome::{Handled, InboxError};
use super::retention::{BATCH, Forgotten, PAUSE, Retention, millis};
use super::watch::Watch;
use semel::StoreError;
use semel::clock::{Clock as _, SystemClock};
use sha2::{Digest as _, Sha256};
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use sqlx::{Connection as _, PgPool, Postgres, Row as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The inbox of one consumer, in the database that the consumer writes to. Its tables come with `semel migrate`, or with opening a
/// `PgStore` there.
///
/// ```no_run
/// use semel_events::consumer::Failure;
/// use semel_events::inbox::{InboxError, MessageId, PgInbox};
///
/// # async fn run(pool: sqlx::PgPool, id: MessageId) -> Result<(), Failure> {
/// let inbox = PgInbox::new(pool, "ledger")?;
/// inbox
///     .handle(&id, async |tx| {
///         sqlx::query("INSERT INTO ledger (payment, cents) VALUES ('pay_1', 1000)").execute(tx).await
///     })
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct PgInbox {
    pool: PgPool,
    consumer: Arc<str>,
    retention: Retention,
    watch: Arc<Watch>,
}

/// The one table or the other.
#[derive(Clone, Copy)]
enum Mark {
    Message,
    Effect,
}

/// The lock first: where it is held, nothing is inserted, and so nothing is waited for. An insert that meets a committed mark does
/// nothing, whatever its snapshot shows. A transaction that is told as committed before it is on disk could be lost after the message
/// was acknowledged: nothing is marked in such a one. It is stamped by the latest time that it may be, as the row about the server's clock has it.
macro_rules! insert {
    ($table:literal, $id:literal) => {
        concat!(
            "WITH mine AS MATERIALIZED (
               SELECT pg_try_advisory_xact_lock($1) AS locked, current_setting('synchronous_commit') IN ('on', 'remote_apply') AS durable
             ), marked AS (
               INSERT INTO ",
            $table,
            " (consumer, ",
            $id,
            ", marked_at)
               SELECT $2, $3, greatest(c.claimed + coalesce(greatest(b.hold - b.behind, 0), 0), b.trusted_at)
               FROM mine, (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS claimed) AS c LEFT JOIN semel_clock b ON b.id = 1
               WHERE locked AND durable
               ON CONFLICT DO NOTHING RETURNING 1)
             SELECT locked, durable, EXISTS (SELECT 1 FROM marked) FROM mine"
        )
    };
}

/// Oldest first; what another one is about to forget is left to it.
macro_rules! forget {
    ($table:literal) => {
        concat!(
            "DELETE FROM ",
            $table,
            " WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM ",
            $table,
            " WHERE consumer = $1 AND marked_at <= $2
               ORDER BY marked_at LIMIT $3 FOR UPDATE SKIP LOCKED))"
        )
    };
}

const MARK_MESSAGE: &str = insert!("semel_inbox", "message_id");
const MARK_EFFECT: &str = insert!("semel_inbox_effects", "effect");
const FORGET_MESSAGES: &str = forget!("semel_inbox");
const FORGET_EFFECTS: &str = forget!("semel_inbox_effects");

/// What the server's clock claims, and what the stores in this database believe of it: the row is there once one was opened.
const CLOCK: &str = "SELECT claimed, b.trusted_at, b.behind, greatest(b.hold, b.behind) > 0
FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS claimed) AS clock LEFT JOIN semel_clock b ON b.id = 1";

/// How old the newest mark of a store that lives may be: it leaves one every minute.
const SINCE_MARK: Duration = Duration::from_secs(120);

/// `in_failed_sql_transaction`, what every statement gets after one that failed in the same transaction.
const ABORTED: &str = "25P02";

impl PgInbox {
    /// The inbox of the consumer of this name. Consumers of different names handle the same message once each.
    ///
    /// # Errors
    /// The name cannot be one.
    pub fn new(pool: PgPool, consumer: impl Into<String>) -> Result<Self, InvalidIdentity> {
        let consumer = consumer.into();
        identity::check("a consumer's name", &consumer)?;
        Ok(Self { pool, consumer: consumer.into(), retention: Retention::default(), watch: Arc::default() })
    }

    /// Keeps marks for so long.
    #[must_use]
    pub fn keeping(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Runs `work` for this message, unless it was handled before: its statements and the mark are one commit. It should do its
    /// statements and nothing else; a call to a third party in it would hold the transaction open. A statement that may fail and be passed
    /// over belongs into a savepoint (`tx.begin()`): without one, its failure is the failure of all of them.
    ///
    /// # Errors
    /// The message is not handled, or (with [`StoreError::Lost`]) it is not known: do not acknowledge it, and the next delivery finds out.
    pub async fn handle<T, E>(
        &self,
        message: &MessageId,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    ) -> Result<Handled<T>, InboxError<E>> {
        self.once(Mark::Message, message.as_str(), work).await
    }

    /// Marks the message in a transaction of the application's own, which has to commit the effects with it. Whether it is the first
    /// time: if not, there is nothing to do, and the transaction can be rolled back. Do not pass over a statement that fails in it: the
    /// server then rolls back, and neither its answer to COMMIT nor sqlx calls that an error.
    ///
    /// # Errors
    /// [`InboxError::NoTransaction`] if none is open, [`InboxError::InProgress`] if another transaction is at it, or the database's own.
    /// Roll the transaction back.
    pub async fn mark_in(
        &self,
        transaction: &mut PgConnection,
        message: &MessageId,
    ) -> Result<bool, InboxError<sqlx::Error>> {
        // The mark would commit by itself: an effect that fails after it would never be tried again.
        if !transaction.is_in_transaction() {
            return Err(InboxError::NoTransaction);
        }
        let marked = self.mark(transaction, Mark::Message, message.as_str()).await;
        marked.map_err(InboxError::Application)?.is_first()
    }

    /// Begins with a message that has several effects; `None` if it was handled before.
    ///
    /// # Errors
    /// [`InboxError::Store`]: the database could not be asked.
    pub async fn steps<E>(&self, message: &MessageId) -> Result<Option<PgSteps<'_>>, InboxError<E>> {
        let handled = self.is_marked(message).await.map_err(|error| unavailable(&error))?;
        Ok((!handled).then(|| PgSteps { inbox: self, message: message.clone() }))
    }

    /// Forgets marks whose time is over, in small batches; during a clock hold, none. Time is what the stores in this database believe it to be: where
    /// one was opened once, and none is open now, it stands still, and nothing more is forgotten.
    ///
    /// # Errors
    /// The store did not answer. What was forgotten before stays so.
    pub async fn forget(&self) -> Result<Forgotten, StoreError> {
        let Retention { messages, effects } = self.retention;
        Ok(Forgotten {
            messages: self.forget_from(Mark::Message, messages).await?,
            effects: self.forget_from(Mark::Effect, effects).await?,
        })
    }

    async fn once<T, E>(
        &self,
        mark: Mark,
        id: &str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    ) -> Result<Handled<T>, InboxError<E>> {
        let begun = semel_postgres::begin(&self.pool).await;
        let mut transaction = begun.map_err(|error| InboxError::Store(unavailable(&error)))?;
        let marked = self.mark(&mut transaction, mark, id).await;
        let marked = marked.map_err(|error| InboxError::Store(unavailable(&error)))?;
        if marked != Marked::First {
            // Now, and not some time after it is dropped: it may hold the mark's lock.
            let _ended = transaction.rollback().await;
            return marked.is_first().map(|_| Handled::Before);
        }
        let worked = match work(&mut transaction).await {
            Ok(value) => intact(&mut transaction).await.map(|()| value),
            Err(error) => Err(InboxError::Application(error)),
        };
        match worked {
            Ok(value) => {
                transaction.commit().await.map_err(|error| not_committed(&error))?;
                Ok(Handled::Now(value))
            }
            Err(error) => {
                let _ended = transaction.rollback().await;
                Err(error)
            }
        }
    }

    /// Whether the message was handled. A transaction, though it reads alone: behind a pooler one statement by itself may be parsed on
    /// one connection of the server's and executed on another.
    async fn is_marked(&self, message: &MessageId) -> Result<bool, sqlx::Error> {
        let mut transaction = semel_postgres::begin(&self.pool).await?;
        let asking = query("SELECT 1 FROM semel_inbox WHERE consumer = $1 AND message_id = $2");
        let asking = asking.bind(&*self.consumer).bind(message.as_str());
        let marked = asking.fetch_optional(&mut *transaction).await?.is_some();
        transaction.commit().await?;
        Ok(marked)
    }

    /// Writes the mark. Nobody waits for a transaction that has written it and not ended: the lock, which goes with the transaction,
    /// tells. The lock decides nothing else: the unique key does.
    async fn mark(
        &self,
        transaction: &mut PgConnection,
        mark: Mark,
        id: &str,
    ) -> Result<Marked, sqlx::Error> {
        let marking = query(mark.insert()).bind(self.lock(mark, id)).bind(&*self.consumer).bind(id);
        let row = marking.fetch_one(transaction).await?;
        Ok(match (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?) {
            (_, false, _) => Marked::NotDurable,
            (false, _, _) => Marked::InProgress,
            (true, true, false) => Marked::Before,
            (true, true, true) => Marked::First,
        })
    }

    fn lock(&self, mark: Mark, id: &str) -> i64 {
        let mut hash = Sha256::new();
        for part in ["semel inbox", mark.table(), &self.consumer, id] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize()[..8]);
        i64::from_be_bytes(first)
    }

    /// The earliest time that it may be; `None` during a clock hold, when nothing is forgotten. A jump of the server's clock forgets nothing by
    /// itself: stores leave a mark in their row once a minute, and time goes no further than that. Without any store, it goes no
    /// further than this process has seen pass.
    async fn earliest(&self, transaction: &mut PgConnection) -> Result<Option<i64>, sqlx::Error> {
        let row = query(CLOCK).fetch_one(transaction).await?;
        let (claimed, trusted): (i64, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
        let (Some(trusted), Some(behind)) = (trusted, row.try_get::<Option<i64>, _>(2)?) else {
            return Ok(Some(self.watch.judge(claimed, SystemClock.boottime())));
        };
        let is_held = row.try_get::<Option<bool>, _>(3)?.unwrap_or_default();
        let newest = trusted.saturating_add(millis(SINCE_MARK));
        Ok((!is_held).then(|| claimed.saturating_sub(behind).min(newest)))
    }

    async fn forget_from(&self, mark: Mark, kept: Duration) -> Result<u64, StoreError> {
        let mut forgotten = 0;
        loop {
            let begun = Instant::now();
            let transaction = semel_postgres::begin(&self.pool).await;
            let mut transaction = transaction.map_err(|error| unavailable(&error))?;
            let now = self.earliest(&mut transaction).await.map_err(|error| unavailable(&error))?;
            let Some(now) = now else {
                let _ended = transaction.rollback().await;
                return Ok(forgotten);
            };
            let until = now.saturating_sub(millis(kept));
            let forgetting = query(mark.forget()).bind(&*self.consumer).bind(until).bind(BATCH);
            let done = forgetting.execute(&mut *transaction).await.map_err(|error| unavailable(&error))?;
            transaction.commit().await.map_err(|error| StoreError::Lost(error.to_string()))?;
            forgotten += done.rows_affected();
            if done.rows_affected() < BATCH.unsigned_abs() {
                return Ok(forgotten);
            }
            tokio::time::sleep(PAUSE.max(begun.elapsed())).await;
        }
    }
}

/// A message with several effects, each in a transaction of its own. Killed anywhere, the next delivery goes on after the last effect
/// that was committed.
///
/// ```no_run
/// # use semel_events::consumer::Failure;
/// # use semel_events::inbox::{MessageId, PgInbox};
/// # async fn run(inbox: PgInbox, id: MessageId) -> Result<(), Failure> {
/// let Some(steps) = inbox.steps::<Failure>(&id).await? else { return Ok(()) };
/// steps
///     .effect("ledger_payment_pay_789", async |tx| {
///         sqlx::query("INSERT INTO ledger (payment) VALUES ('pay_789')").execute(tx).await
///     })
///     .await?;
/// steps
///     .effect("receipt_payment_pay_789", async |tx| {
///         sqlx::query("INSERT INTO mails (payment) VALUES ('pay_789')").execute(tx).await
///     })
///     .await?;
/// steps.finish::<Failure>().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a message is handled once `finish` has marked it"]
pub struct PgSteps<'i> {
    inbox: &'i PgInbox,
    message: MessageId,
}

impl PgSteps<'_> {
    /// Runs `work`, unless this effect is done: its statements and the effect's mark are one commit. `identity` names the effect by what it
    /// is about, as `ledger_payment_pay_789`; it is the consumer's own, and the same whichever message asks for it.
    ///
    /// # Errors
    /// The effect is not done, or (with [`StoreError::Lost`]) it is not known. Effects before it stay done.
    pub async fn effect<T, E>(
        &self,
        identity: &str,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    ) -> Result<Handled<T>, InboxError<E>> {
        identity::check("an effect's identity", identity)?;
        self.inbox.once(Mark::Effect, identity, work).await
    }

    /// Marks the message, after its last effect.
    ///
    /// # Errors
    /// As there. What is done stays done; the next delivery passes over it and marks.
    pub async fn finish<E>(self) -> Result<(), InboxError<E>> {
        let marked = self.inbox.once(Mark::Message, self.message.as_str(), async |_| Ok(())).await?;
        let (Handled::Now(()) | Handled::Before) = marked;
        Ok(())
    }
}

/// What became of a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    First,
    Before,
    InProgress,
    NotDurable,
}

impl Marked {
    fn is_first<E>(self) -> Result<bool, InboxError<E>> {
        match self {
            Self::First => Ok(true),
            Self::Before => Ok(false),
            Self::InProgress => Err(InboxError::InProgress),
            Self::NotDurable => Err(InboxError::NotDurable),
        }
    }
}

impl Mark {
    fn table(self) -> &'static str {
        match self {
            Self::Message => "semel_inbox",
            Self::Effect => "semel_inbox_effects",
        }
    }

    fn insert(self) -> &'static str {
        match self {
            Self::Message => MARK_MESSAGE,
            Self::Effect => MARK_EFFECT,
        }
    }

    fn forget(self) -> &'static str {
        match self {
            Self::Message => FORGET_MESSAGES,
            Self::Effect => FORGET_EFFECTS,
        }
    }
}

/// Prepared for this once: behind a pooler in transaction mode the next transaction may be on another connection of the server's.
fn query(sql: &'static str) -> Query<'static, Postgres, PgArguments> {
    sqlx::query(sql).persistent(false)
}

fn unavailable(error: &sqlx::Error) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// Asks the server whether there is anything to commit. After a statement that failed there is not, and the answer to COMMIT is "ROLLBACK"
/// then, which is no error and which sqlx takes for a success: where the work passed over such a failure, its message would be
/// acknowledged without effect and without a mark.
async fn intact<E>(transaction: &mut PgConnection) -> Result<(), InboxError<E>> {
    let asked = sqlx::raw_sql("SELECT 1").fetch_one(transaction).await;
    asked.map(drop).map_err(|error| match passed_over(&error) {
        Some(why) => InboxError::Refused(why),
        None => InboxError::Store(unavailable(&error)),
    })
}

/// If this is what the server says to every statement after one that failed in the same transaction: what has happened, in words.
pub(crate) fn passed_over(error: &sqlx::Error) -> Option<String> {
    let code = error.as_database_error()?.code()?;
    let told = || format!("a statement failed inside the transaction and was ignored: {error}");
    (code == ABORTED).then(told)
}

/// What a commit that failed has left.
fn not_committed<E>(error: &sqlx::Error) -> InboxError<E> {
    match error {
        // The server said so, which rolls back.
        sqlx::Error::Database(refusal) if !passes(refusal.code().as_deref()) => {
            InboxError::Refused(refusal.to_string())
        }
        sqlx::Error::Database(refusal) => InboxError::Store(StoreError::Unavailable(refusal.to_string())),
        _ => InboxError::Store(StoreError::Lost(error.to_string())),
    }
}

/// Whether what the server says by this code is no fault of the message: its connections, rights, resources or tables, its shutting
/// down, a deadlock or another transaction in the way. The same statements may well succeed the next time, or once somebody has
/// migrated. That a statement before it failed says nothing of the moment: a handler that passes over its failures would be tried for
/// ever.
pub(crate) fn passes(code: Option<&str>) -> bool {
    const CLASSES: [&str; 11] = ["08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58"];
    code.is_some_and(|code| code != ABORTED && CLASSES.iter().any(|class| code.starts_with(class)))
}
