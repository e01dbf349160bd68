//! Copies the log back into the file beside the writer, so that nobody's commit waits for it.
//!
//! SQLite would do it within a commit: pages at random places and a sync of the file, several milliseconds in which nobody is answered.
//! A thread with a connection of its own does most of it instead. It cannot have the log begun anew, for whoever keeps writing
//! is always a few pages ahead of it: when the log is long, the writer copies what little is left, and its next commit begins anew.

use crate::connection::open_copier;
use crate::error::OpenError;
use crate::options::SqliteOptions;
use crate::schema::opening;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// So many times as long as it is when copying begins, the log is the writer's to finish.
const LONG: u32 = 4;

/// The thread that copies.
pub(crate) struct LogCopier(JoinHandle<()>);

impl LogCopier {
    /// Has what `writer` commits copied from now on.
    pub(crate) fn beside(
        writer: &mut Connection,
        path: &Path,
        options: &SqliteOptions,
    ) -> Result<Self, OpenError> {
        let conn = open_copier(path, options)?;
        // Room for one: being told twice is being told.
        let (wake, woken) = sync_channel(1);
        let body = move || copy_when_told(&conn, &woken);
        let thread = std::thread::Builder::new().name("semel-sqlite-log".into()).spawn(body);
        let thread = thread.map_err(OpenError::Thread)?;
        let mut log = Log::new(options.log_pages);
        let after_commit = move |wal: &mut Wal, pages: std::ffi::c_int| {
            match log.has(u32::try_from(pages).unwrap_or(0)) {
                Next::Nothing => {}
                Next::Beside => drop(wake.try_send(())),
                Next::Here => told(wal.checkpoint()),
            }
            // The transaction is durable already: whatever became of the copying, the commit has not failed.
            Ok(())
        };
        writer.wal_hook(Some(after_commit)).map_err(|error| opening(path, error))?;
        Ok(Self(thread))
    }

    /// Ends the thread, and with it its connection: whoever closes the file last tidies the log away, and that is the writer.
    pub(crate) fn end(self, writer: &mut Connection) {
        // What tells the thread goes with the hook.
        if writer.wal_hook(None::<fn(&mut Wal, std::ffi::c_int) -> rusqlite::Result<()>>).is_ok() {
            let _panicked = self.0.join();
        }
    }
}

fn copy_when_told(conn: &Connection, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        // Passive: it waits for nobody, and nobody for it.
        told(conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())));
    }
}

/// Nothing is lost where copying failed, and the next one tries again.
fn told(copied: rusqlite::Result<()>) {
    match copied {
        Ok(()) => {}
        // Another one is at it.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
        Err(error) => {
            tracing::warn!(%error, "the log could not be copied into the file, and grows meanwhile")
        }
    }
}

/// What is to be done after a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Nothing,
    /// Tell the thread.
    Beside,
    /// Copy what is left.
    Here,
}

/// How long the log is.
struct Log {
    /// After so many pages more, they are copied.
    every: u32,
    told_at: u32,
}

impl Log {
    fn new(every: u32) -> Self {
        Self { every: every.max(1), told_at: 0 }
    }

    fn has(&mut self, pages: u32) -> Next {
        if pages < self.told_at {
            // It was begun anew.
            self.told_at = 0;
        }
        if pages >= self.every.saturating_mul(LONG) {
            return Next::Here;
        }
        if pages - self.told_at >= self.every {
            self.told_at = pages;
            return Next::Beside;
        }
        Next::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_is_told_every_so_many_pages_and_the_writer_ends_a_long_log() {
        let mut log = Log::new(100);
        let told: Vec<_> = [40, 99, 100, 150, 199, 210, 309, 310, 399, 400, 420, 10, 90, 130]
            .map(|pages| log.has(pages))
            .into();
        use Next::{Beside, Here, Nothing};
        let expected = [
            Nothing, Nothing, Beside, Nothing, Nothing, Beside, Nothing, Beside, Nothing, Here, Here,
            Nothing, Nothing, Beside,
        ];
        assert_eq!(told, expected);
    }
}
