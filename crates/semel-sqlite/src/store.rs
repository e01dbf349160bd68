//! The store's handle.

use crate::clock::{self, StoreClock};
use crate::connection::{OpenedFile, check_path, open_reader, open_writer};
use crate::error::{OpenError, TransactionError};
use crate::exposure::{Exposure, exposed};
use crate::fence::Fence;
use crate::job::{self, Job};
use crate::options::SqliteOptions;
use crate::reader::{self, Found, ReadQueue, Reader, ToReader, looking, reading, recalling};
use crate::schema::opening;
use crate::statements;
use crate::stats::{Counters, Stats};
use crate::threads::Threads;
use crate::ticker::Ticker;
use crate::transaction::{Transaction, closure, finishing};
use crate::writer::{self, ToWriter, WalCheckpointer, Writer};
use crate::{audit, error::Fault, listing};
use bytes::Bytes;
use rusqlite::Connection;
use semel::audit::{AuditCursor, AuditEntry, AuditFilter, AuditPage};
use semel::clock::{ClockReport, ClockRequest, Told, Wrong};
use semel::columns::key_hash;
use semel::transition::{Act, Claim};
use semel::{
    Answer, Created, Cursor, DamageLog, Draft, DueQuery, Expected, Filter, HistoryLine, KeyFormat,
    KeyFormatSet, LiveOperations, Now, OperationId, Page, Purged, Record, RecordKey, Respell, Store,
    StoreError, StoreFuture, Swap, Swapped, Timestamp,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// A durable memory of records in one SQLite file.
///
/// A handle is cheap to clone; the threads behind it end with the last one, after what was queued is done. Several processes
/// may open the same file.
///
/// ```
/// # use semel_sqlite::{OpenError, SqliteStore};
/// # async fn run() -> Result<(), OpenError> {
/// let store = SqliteStore::open("semel.db").await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

// Fields are dropped in this order: the channels close first, then the threads are waited for.
struct Inner {
    _ticker: Ticker,
    clock: Arc<StoreClock>,
    writer: mpsc::Sender<ToWriter>,
    readers: mpsc::Sender<ToReader>,
    counters: Arc<Counters>,
    damage: Arc<DamageLog>,
    path: PathBuf,
    threads: Threads,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl SqliteOptions {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// What is wrong with the path, the file or the settings, and what to do about it.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, OpenError> {
        SqliteStore::open_with(path.as_ref(), self).await
    }
}

impl SqliteStore {
    /// Opens the file at `path`, or makes it, with the default [`SqliteOptions`].
    ///
    /// # Errors
    /// What is wrong with the path, the file or the settings, and what to do about it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        SqliteOptions::new().open(path).await
    }

    async fn open_with(path: &Path, options: SqliteOptions) -> Result<Self, OpenError> {
        check_path(path)?;
        // A process may change its directory; the file stays where it is.
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.into());
        let clock = Arc::new(StoreClock::new(options.clock.clone(), options.clock_terms));
        let counters = Arc::new(Counters::default());
        let mut threads = Threads::default();
        let (writer, queue) = mpsc::channel(writer::QUEUE);
        threads
            .start("semel-sqlite-writer", {
                let (path, options) = (path.to_path_buf(), options.clone());
                let (clock, counters) = (clock.clone(), counters.clone());
                let open = move || {
                    let mut conn = open_writer(&path, &options)?;
                    let fence = Fence::around(&mut conn).map_err(|error| opening(&path, error))?;
                    let log = WalCheckpointer::beside(&mut conn, &path, &options)?;
                    Ok(Writer { conn, log, file: OpenedFile::new(&path), clock, counters, fence })
                };
                (open, move |writer: Writer| writer.run(queue))
            })
            .await?;
        let (readers, queue) = mpsc::channel(reader::QUEUE);
        let queue: ReadQueue = Arc::new(Mutex::new(queue));
        for number in 0..options.readers {
            threads
                .start(&format!("semel-sqlite-reader-{number}"), {
                    let (path, options) = (path.to_path_buf(), options.clone());
                    let (clock, queue) = (clock.clone(), queue.clone());
                    let open = move || Ok(Reader { conn: open_reader(&path, &options)?, clock });
                    (open, move |reader: Reader| reader.run(&queue))
                })
                .await?;
        }
        for exposure in exposed(path) {
            tracing::warn!("{exposure}");
        }
        clock.announce();
        let ticker = Ticker::start(writer.downgrade(), clock.period()).map_err(OpenError::Thread)?;
        let store = Self {
            inner: Arc::new(Inner {
                _ticker: ticker,
                clock,
                writer,
                readers,
                counters,
                damage: Arc::default(),
                path: path.into(),
                threads,
            }),
        };
        // Before the store is used: all processes that share the file must see an open clock hold.
        if let Err(error) = store.write(job::clock_job(false)).await {
            tracing::warn!(%error, "the clock mark could not be stored; retrying with the next commit");
        }
        Ok(store)
    }

    /// By what other users of the machine can read or change what is stored, as it is now. What was found when the store was opened
    /// is in the log.
    #[must_use]
    pub fn exposed(&self) -> Vec<Exposure> {
        exposed(&self.inner.path)
    }

    /// Runs `work` inside the store's next transaction: domain statements and [`act`](Transaction::act)s commit together, or
    /// vanish together. It shares commit and sync with whatever else waits at the moment, under a savepoint of its own: if it
    /// fails, what it wrote is rolled back and the others do not notice.
    ///
    /// Everybody's writes wait while `work` runs: it should do its statements and nothing else. A future that is dropped
    /// before `work` began takes it back; after that, `work` is committed all the same.
    ///
    /// # Errors
    /// [`TransactionError::Application`] with the error of `work`. With all errors but [`StoreError::Lost`], nothing was
    /// written.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, TransactionError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.run_closure(|transaction: &Transaction<'_>| {
            work(transaction).map_err(TransactionError::Application)
        })
        .await
    }

    /// Runs `work`, then the [`Act`] that it returns, on behalf of `claim`, in one transaction: the domain rows and the
    /// operation's outcome. The value of `work`, and the record as it is then (`None`: it was removed).
    ///
    /// # Errors
    /// [`TransactionError::Refused`] if the claim does not hold any more; the domain rows are rolled back then. The others as
    /// in [`transaction`](Self::transaction).
    pub async fn finish_with<T, E, F>(
        &self,
        claim: Claim,
        work: F,
    ) -> Result<(T, Option<Record>), TransactionError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<(T, Act), E> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        self.run_closure(finishing(claim, work)).await
    }

    async fn run_closure<T, E, F>(&self, work: F) -> Result<T, TransactionError<E>>
    where
        F: FnOnce(&Transaction<'_>) -> Result<T, TransactionError<E>> + Send + 'static,
        T: Send + 'static,
        E: Send + 'static,
    {
        let (job, waiting) = closure(work);
        self.queue(job).await?;
        waiting.await.unwrap_or_else(|_| Err(no_answer().into()))
    }

    /// Runs `work` on a reader's connection, which cannot write: with one snapshot of the file and the store's now. No write waits
    /// for it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Damaged`], with what SQLite says.
    pub async fn query<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, Timestamp) -> rusqlite::Result<T> + Send + 'static,
    {
        self.view(move |conn, now| Ok(work(conn, now.earliest)?)).await
    }

    /// What the writer has done since the file was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.counters.stats()
    }

    /// Does what is queued, stops, and closes the file. Other handles find the store unavailable from then on.
    pub async fn close(self) {
        // Readers first: the last connection to close removes the WAL, and only the writer may write.
        let _gone = self.inner.readers.send(ToReader::Stop).await;
        let (writer, readers) = self.inner.threads.take_ends();
        for end in readers {
            let _ended = end.await;
        }
        let _gone = self.inner.writer.send(ToWriter::Stop).await;
        for end in writer {
            let _ended = end.await;
        }
    }

    async fn look_at_clock(&self) -> Result<Told, StoreError> {
        self.read_by(looking()).await
    }

    async fn queue(&self, job: Box<dyn Job>) -> Result<(), StoreError> {
        self.inner.writer.send(ToWriter::Job(job)).await.map_err(|_| closed())
    }

    async fn write<T>(&self, (job, waiting): (Box<dyn Job>, job::Waiting<T>)) -> Result<T, StoreError> {
        self.queue(job).await?;
        waiting.await.unwrap_or_else(|_| Err(no_answer()))
    }

    async fn view<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, Now) -> Result<T, Fault> + Send + 'static,
    {
        self.read_by(reading(read)).await
    }

    async fn read_by<T>(&self, (message, waiting): (ToReader, Found<T>)) -> Result<T, StoreError> {
        self.inner.readers.send(message).await.map_err(|_| closed())?;
        // Nothing was to be written, so nothing can have been.
        waiting.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("a reader thread of the store has panicked".into()))
        })
    }
}

fn closed() -> StoreError {
    StoreError::Unavailable("the store is closed".into())
}

fn no_answer() -> StoreError {
    StoreError::Lost("the writer thread of the store has panicked".into())
}

impl Store for SqliteStore {
    fn create(&self, batch: Vec<Draft>) -> StoreFuture<'_, Answer<Created>> {
        Box::pin(async move {
            batch.iter().try_for_each(semel::check_draft)?;
            self.write(job::create(batch)).await
        })
    }

    fn swap(&self, batch: Vec<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            batch.iter().try_for_each(Swap::check)?;
            self.write(job::swap(batch)).await
        })
    }

    fn remove(&self, batch: Vec<Expected>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(self.write(job::remove(batch)))
    }

    fn read(&self, keys: Vec<RecordKey>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(self.view(move |conn, now| {
            let items = keys
                .iter()
                .map(|key| statements::read(conn, key, &key_hash(key)))
                .collect::<Result<_, _>>()?;
            Ok(Answer::at(now, items))
        }))
    }

    fn find(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Answer<Option<Record>>> {
        Box::pin(self.view(move |conn, now| {
            let items = ids.into_iter().map(|id| statements::find(conn, id)).collect::<Result<_, _>>()?;
            Ok(Answer::at(now, items))
        }))
    }

    fn history(&self, id: OperationId) -> StoreFuture<'_, Vec<HistoryLine>> {
        Box::pin(self.view(move |conn, _now| listing::history(conn, id)))
    }

    fn list(&self, filter: Filter, from: Option<Cursor>, limit: usize) -> StoreFuture<'_, Page> {
        let damage = Arc::clone(&self.inner.damage);
        Box::pin(
            self.view(move |conn, now| listing::list(conn, &filter, now.earliest, (from, limit), &damage)),
        )
    }

    fn count_live(&self, tenant: String, at_most: u64) -> StoreFuture<'_, u64> {
        Box::pin(self.view(move |conn, now| listing::count_live(conn, &tenant, now.latest, at_most)))
    }

    fn live_operations(&self, newest: usize) -> StoreFuture<'_, LiveOperations> {
        Box::pin(self.view(move |conn, now| listing::live_operations(conn, newest, now.earliest)))
    }

    fn due(&self, query: DueQuery) -> StoreFuture<'_, Answer<Record>> {
        let damage = Arc::clone(&self.inner.damage);
        Box::pin(self.view(move |conn, now| Ok(Answer::at(now, listing::due(conn, &query, now, &damage)?))))
    }

    fn drop_answers(&self, at_most: usize) -> StoreFuture<'_, Answer<Timestamp>> {
        Box::pin(self.write(job::drop_answers(at_most)))
    }

    fn purge(&self, at_most: usize) -> StoreFuture<'_, Answer<Purged>> {
        Box::pin(self.write(job::purge(at_most)))
    }

    fn remember(&self, name: String, value: Bytes) -> StoreFuture<'_, Bytes> {
        Box::pin(self.write(job::remember(name, value)))
    }

    fn clock(&self, request: ClockRequest) -> StoreFuture<'_, ClockReport> {
        Box::pin(async move {
            let accepts = request == ClockRequest::Accept;
            match self.look_at_clock().await?.wrong {
                Some(wrong @ Wrong::Contradicted(_)) if accepts => {
                    return Err(StoreError::Unavailable(clock::reason(wrong)));
                }
                Some(_) if !accepts => {}
                wrong => {
                    if wrong.is_some() {
                        self.inner.clock.accept_behind();
                    }
                    self.write(job::clock_job(accepts)).await?;
                }
            }
            Ok(self.inner.clock.report(&self.look_at_clock().await?))
        })
    }

    fn recall(&self, name: String) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(self.read_by(recalling(name)))
    }

    // The writer takes all that waits for it into one transaction, so batches beside each other cost no syncs of their own. What comes
    // while a transaction is being synced is to wait here, not with whoever would have to be woken first to send it: it would come too
    // late for the next one.
    fn replace(&self, name: String, expected: Bytes, value: Bytes) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(self.write(job::replace(name, expected, value)))
    }

    fn set_key_format(&self, format: KeyFormat, respell: Option<Respell>) -> StoreFuture<'_, KeyFormatSet> {
        Box::pin(self.write(job::set_key_format(format, respell)))
    }

    fn audit(&self, entry: AuditEntry, change: Option<Swap>) -> StoreFuture<'_, Answer<Swapped>> {
        Box::pin(async move {
            change.iter().try_for_each(Swap::check)?;
            self.write(job::audit(entry, change)).await
        })
    }

    fn audited(
        &self,
        filter: AuditFilter,
        from: Option<AuditCursor>,
        limit: usize,
    ) -> StoreFuture<'_, AuditPage> {
        let damage = Arc::clone(&self.inner.damage);
        Box::pin(self.view(move |conn, _now| audit::list(conn, &filter, from.as_ref(), limit, &damage)))
    }

    fn purge_audit(&self, older_than: Duration, at_most: usize) -> StoreFuture<'_, u64> {
        Box::pin(self.write(job::purge_audit(older_than, at_most)))
    }

    fn max_concurrent_batches(&self) -> usize {
        16
    }
}
