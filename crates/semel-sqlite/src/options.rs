//! How a store is opened.

use semel::clock::{Clock, SystemClock, Terms};
use std::sync::Arc;
use std::time::Duration;

/// How a [`SqliteStore`](crate::SqliteStore) is opened. What `new()` gives is safe as it stands.
///
/// ```
/// # use semel_sqlite::{OpenError, SqliteOptions};
/// # use std::time::Duration;
/// # async fn run(directory: &std::path::Path) -> Result<(), OpenError> {
/// let store = SqliteOptions::new().busy_timeout(Duration::from_millis(500)).open(directory.join("semel.db")).await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteOptions {
    pub(crate) busy_timeout: Duration,
    pub(crate) readers: usize,
    pub(crate) max_file_size: Option<u64>,
    pub(crate) share_database_file: bool,
    pub(crate) fsync: bool,
    pub(crate) checkpoint_pages: u32,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) clock_terms: Terms,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl SqliteOptions {
    /// The upper limit of [`busy_timeout`](Self::busy_timeout): clients do not wait longer either.
    pub const LONGEST_BUSY_TIMEOUT: Duration = Duration::from_secs(60);

    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self {
            busy_timeout: Duration::from_secs(1),
            readers: 2,
            max_file_size: None,
            share_database_file: false,
            fsync: true,
            checkpoint_pages: 2_000,
            clock: Arc::new(SystemClock),
            clock_terms: Terms::default(),
        }
    }

    /// How long a write waits for the lock of another process before it is answered as unavailable. Default 1 s, which is
    /// below the engine's own time limit; at most [`LONGEST_BUSY_TIMEOUT`](Self::LONGEST_BUSY_TIMEOUT).
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout.min(Self::LONGEST_BUSY_TIMEOUT);
        self
    }

    /// How many threads read, each with a connection of its own. Default 2, at least 1, at most 64.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.clamp(1, 64);
        self
    }

    /// How many bytes the file may grow to. A write that would need more is answered as unavailable. Default: no limit but
    /// the disk's.
    #[must_use]
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.max_file_size = Some(bytes);
        self
    }

    /// Puts the store's tables (all named `semel_…`) into a database that already has other tables, so that a domain write
    /// can share the store's transaction. Without it such a file is refused: it might have been named by mistake.
    #[must_use]
    pub fn share_database_file(mut self) -> Self {
        self.share_database_file = true;
        self
    }

    /// Answers before a commit is on disk (`synchronous=OFF`). A crash of the machine then loses acknowledged outcomes, and
    /// a retry may execute again. For tests and benchmarks of everything but the disk.
    #[must_use]
    pub fn dangerously_without_fsync(mut self) -> Self {
        self.fsync = false;
        self
    }

    /// After how many pages of the WAL (`semel.db-wal`) a checkpoint copies them into the file, on a thread of its own. Default 2,000, at
    /// least 1. A longer WAL takes more space and more time to recover after a crash; how much is copied hardly depends on it.
    #[must_use]
    pub fn checkpoint_pages(mut self, pages: u32) -> Self {
        self.checkpoint_pages = pages.max(1);
        self
    }

    /// Takes the time from `clock`. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How far, and on whose word, the clock is believed. Default: jumps of more than an hour open a clock hold, which ends once the kernel has
    /// reported a synchronised clock for a quarter of an hour. A step of less than [`Terms::max_step`] is followed, and ends windows by as much: it must
    /// be no more than a quarter of the shortest time for which any operation here [remembers](semel::Policy::remembered) a key. Where that is less
    /// than four hours, pass `Terms::default().within(policy.remembered())`; a gateway does so by itself. All processes on one store need the same.
    #[must_use]
    pub fn clock_terms(mut self, terms: Terms) -> Self {
        self.clock_terms = terms;
        self
    }
}
