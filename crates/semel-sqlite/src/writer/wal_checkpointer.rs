//! Checkpoints the WAL on a thread beside the writer, so that no commit waits for it.
//!
//! SQLite would do it within a commit: pages at random places and a sync of the file, several milliseconds in which no caller gets an answer.
//! A thread with its own connection does most of it instead. It cannot have the WAL restarted, because a writer that keeps writing
//! is always a few pages ahead of it. When the WAL is long, the thread continues until it has almost caught up; the writer copies the few pages
//! that are left, and its next commit restarts the WAL.

use crate::connection::open_checkpointer;
use crate::error::OpenError;
use crate::options::SqliteOptions;
use crate::schema::opening;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// From this many times [`SqliteOptions::checkpoint_pages`](crate::SqliteOptions::checkpoint_pages) on, the WAL should be restarted.
const LONG: u32 = 4;

/// From this many times on, the writer checkpoints by itself: the thread is slower than the writer, or cannot checkpoint at all.
const TOO_LONG: u32 = 8;

/// The writer copies the rest if it is at most this fraction of the checkpoint's length.
const LITTLE: u32 = 4;

/// The checkpointing thread.
pub(crate) struct WalCheckpointer(JoinHandle<()>);

impl WalCheckpointer {
    /// Starts checkpointing what `writer` commits.
    pub(crate) fn beside(
        writer: &mut Connection,
        path: &Path,
        options: &SqliteOptions,
    ) -> Result<Self, OpenError> {
        let conn = open_checkpointer(path, options)?;
        let (wake, woken) = sync_channel(1);
        let mut log = Log::new(options.checkpoint_pages);
        let thread = Arc::clone(&log.thread);
        let body = move || copy_when_told(&conn, &woken, &thread);
        let thread = std::thread::Builder::new().name("semel-sqlite-wal".into()).spawn(body);
        let thread = thread.map_err(OpenError::Thread)?;
        let after_commit = move |wal: &mut Wal, pages: std::ffi::c_int| {
            match log.has(u32::try_from(pages).unwrap_or(0)) {
                Next::Nothing => {}
                Next::WakeThread => drop(wake.try_send(())),
                Next::CopyHere => drop(told(wal.checkpoint())),
            }
            // The transaction is durable already: a failed checkpoint is no failed commit.
            Ok(())
        };
        writer.wal_hook(Some(after_commit)).map_err(|error| opening(path, error))?;
        Ok(Self(thread))
    }

    /// Ends the thread and its connection: the last connection to close removes the WAL, and that must be the writer's.
    pub(crate) fn end(self, writer: &mut Connection) {
        // Dropping the hook drops the channel that wakes the thread.
        if writer.wal_hook(None::<fn(&mut Wal, std::ffi::c_int) -> rusqlite::Result<()>>).is_ok() {
            let _panicked = self.0.join();
        }
    }
}

fn copy_when_told(conn: &Connection, woken: &Receiver<()>, thread: &Thread) {
    while woken.recv().is_ok() {
        // A passive checkpoint blocks no other connection. It returns how many pages of the WAL are in the file now.
        let copying = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(2));
        thread.is_done(told(copying).and_then(|pages| u32::try_from(pages).ok()));
    }
}

/// A failed checkpoint loses nothing; the next one tries again.
fn told<T>(copying: rusqlite::Result<T>) -> Option<T> {
    match copying {
        Ok(copied) => return Some(copied),
        // Another connection is checkpointing.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
        Err(error) => {
            tracing::warn!(%error, "WAL checkpoint failed; the WAL grows until one succeeds")
        }
    }
    None
}

/// What is to be done after a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Nothing,
    /// Tell the thread.
    WakeThread,
    /// Copy what is left.
    CopyHere,
}

/// What the thread is at.
#[derive(Default)]
struct Thread {
    /// A checkpoint is running. Others fail with `SQLITE_BUSY` meanwhile.
    is_copying: AtomicBool,
    /// How many pages of the WAL the last checkpoint had copied. If the WAL was restarted since, the writer copies more than it expects, and
    /// nothing else comes of it.
    copied: AtomicU32,
}

impl Thread {
    fn is_done(&self, copied: Option<u32>) {
        if let Some(copied) = copied {
            self.copied.store(copied, Ordering::Relaxed);
        }
        self.is_copying.store(false, Ordering::Release);
    }
}

/// How long the log is.
struct Log {
    /// The number of new pages after which a checkpoint runs.
    every: u32,
    told_at: u32,
    thread: Arc<Thread>,
}

impl Log {
    fn new(every: u32) -> Self {
        Self { every: every.max(1), told_at: 0, thread: Arc::default() }
    }

    fn has(&mut self, pages: u32) -> Next {
        if pages < self.told_at {
            // The WAL was restarted.
            self.told_at = 0;
            self.thread.copied.store(0, Ordering::Relaxed);
        }
        if pages >= self.every.saturating_mul(TOO_LONG) {
            return Next::CopyHere;
        }
        if self.thread.is_copying.load(Ordering::Acquire) {
            return Next::Nothing;
        }
        let is_long = pages >= self.every.saturating_mul(LONG);
        if is_long && pages.saturating_sub(self.thread.copied.load(Ordering::Relaxed)) <= self.every / LITTLE
        {
            return Next::CopyHere;
        }
        if is_long || pages - self.told_at >= self.every {
            self.told_at = pages;
            self.thread.is_copying.store(true, Ordering::Relaxed);
            return Next::WakeThread;
        }
        Next::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::Next::{CopyHere, Nothing, WakeThread};
    use super::*;

    /// What happens after commits that leave the WAL this long, if the thread has copied all of it before the next one.
    fn beside_a_fast_thread(log: &mut Log, pages: &[u32]) -> Vec<Next> {
        let after = |pages: &u32| {
            let next = log.has(*pages);
            if next == WakeThread {
                log.thread.is_done(Some(*pages));
            }
            next
        };
        pages.iter().map(after).collect()
    }

    #[test]
    fn the_thread_is_told_every_so_many_pages() {
        let mut log = Log::new(100);
        let next = beside_a_fast_thread(&mut log, &[40, 99, 100, 150, 199, 210, 309, 310, 399]);
        assert_eq!(
            next,
            [Nothing, Nothing, WakeThread, Nothing, Nothing, WakeThread, Nothing, WakeThread, Nothing]
        );
        let next = beside_a_fast_thread(&mut log, &[10, 90, 130]);
        assert_eq!(next, [Nothing, Nothing, WakeThread], "the WAL is restarted");
    }

    #[test]
    fn a_long_log_is_the_threads_until_little_is_left_and_then_the_writers_to_end() {
        let mut log = Log::new(100);
        assert_eq!(beside_a_fast_thread(&mut log, &[100, 200, 300]), [WakeThread; 3]);
        assert_eq!(log.has(400), WakeThread, "a hundred pages are left");
        assert_eq!(log.has(420), Nothing, "whoever copies beside the thread is turned away");
        log.thread.is_done(Some(400));
        assert_eq!(log.has(430), WakeThread, "thirty are left");
        log.thread.is_done(Some(430));
        assert_eq!(
            [log.has(440), log.has(455)],
            [CopyHere, CopyHere],
            "the WAL is restarted unless a reader still uses it"
        );
        assert_eq!(log.has(460), WakeThread, "else there is something for the thread again");
        log.thread.is_done(Some(460));
        assert_eq!(log.has(5), Nothing);
        assert_eq!(log.has(400), WakeThread, "nothing of this log is copied");
    }

    #[test]
    fn a_log_that_nobody_copies_is_the_writers() {
        let mut log = Log::new(100);
        assert_eq!(log.has(100), WakeThread);
        assert_eq!([400, 799, 800, 840].map(|pages| log.has(pages)), [Nothing, Nothing, CopyHere, CopyHere]);
    }
}
