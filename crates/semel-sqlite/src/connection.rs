//! A connection to the file, with the settings that make its commits safe.

use crate::error::OpenError;
use crate::exposure::create_private;
use crate::options::SqliteOptions;
use crate::schema::{self, opening};
use rusqlite::{Connection, OpenFlags};
use semel::StoreError;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Earlier ones can corrupt the file when one connection resets the log while another one writes.
const OLDEST_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// Refuses what cannot be a durable file, before SQLite would make something of it.
pub(crate) fn check_path(path: &Path) -> Result<(), OpenError> {
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(OpenError::NotDurable { path: path.into() });
    }
    if path.is_dir() {
        return Err(OpenError::IsDirectory { path: path.into() });
    }
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() && !directory.is_dir() => {
            Err(OpenError::NoDirectory { directory: directory.into() })
        }
        _ => Ok(()),
    }
}

/// Opens the file for writing, makes or migrates its tables and checks the settings.
pub(crate) fn open_writer(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    check_sqlite(rusqlite::version_number(), rusqlite::version())?;
    create_private(path);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(|error| opening(path, error))?;
    let failed = |error| opening(path, error);
    conn.busy_handler(Some(waiting(options.busy_timeout))).map_err(failed)?;
    // Before anything is changed: a file that is not ours is left as it was.
    schema::check(&conn, path, options.share_database_file)?;
    if conn.is_readonly("main").map_err(failed)? {
        return Err(OpenError::ReadOnly { path: path.into() });
    }
    use_log(&conn, path, options.busy_timeout)?;
    sync_by(&conn, path, options)?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20).map_err(failed)?;
    // In KiB, as negative numbers are. Small on purpose: where a commit has rearranged the pages of an index, SQLite looks through all
    // of its cache at the end of it (as long as the file is smaller than 1 GiB). What is not in it is in the system's.
    conn.pragma_update(None, "cache_size", -8 * 1024).map_err(failed)?;
    // What a savepoint keeps for rolling back needs no file.
    conn.pragma_update(None, "temp_store", "MEMORY").map_err(failed)?;
    schema::migrate(&mut conn, path, options.share_database_file)?;
    // A large transaction may need more for a moment; written early, its pages would be written twice. A migration may be as large as the
    // file, and is not for the memory.
    conn.pragma_update(None, "cache_spill", false).map_err(failed)?;
    if let Some(bytes) = options.max_file_size {
        let page: i64 = conn.pragma_query_one(None, "page_size").map_err(failed)?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page.max(1);
        conn.pragma_update_and_check(None, "max_page_count", pages.max(1), |_| Ok(())).map_err(failed)?;
    }
    conn.set_prepared_statement_cache_capacity(128);
    Ok(conn)
}

/// Opens the existing file for WAL checkpoints.
pub(crate) fn open_checkpointer(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).map_err(|error| opening(path, error))?;
    sync_by(&conn, path, options)?;
    Ok(conn)
}

/// Has commits and checkpoints synced, and reads the setting back; or switches syncing off where the options say so.
fn sync_by(conn: &Connection, path: &Path, options: &SqliteOptions) -> Result<(), OpenError> {
    let failed = |error| opening(path, error);
    let synchronous = if options.fsync { "FULL" } else { "OFF" };
    conn.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
    // On macOS an fsync alone leaves the data in the drive's cache. Elsewhere these two mean nothing.
    conn.pragma_update(None, "fullfsync", options.fsync).map_err(failed)?;
    conn.pragma_update(None, "checkpoint_fullfsync", options.fsync).map_err(failed)?;
    if options.fsync { check_durability(conn, path) } else { Ok(()) }
}

/// Opens the existing file for reading.
pub(crate) fn open_reader(path: &Path, options: &SqliteOptions) -> Result<Connection, OpenError> {
    let failed = |error| opening(path, error);
    // Opened for writing: a read-only connection could not rebuild the WAL's index after a crash.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags).map_err(failed)?;
    conn.busy_handler(Some(waiting(options.busy_timeout))).map_err(failed)?;
    conn.pragma_update(None, "query_only", true).map_err(failed)?;
    conn.pragma_update(None, "cache_size", -8 * 1024).map_err(failed)?;
    conn.set_prepared_statement_cache_capacity(64);
    Ok(conn)
}

fn check_sqlite(number: i32, name: &'static str) -> Result<(), OpenError> {
    if number < OLDEST_SQLITE.0 {
        return Err(OpenError::SqliteTooOld { found: name, needed: OLDEST_SQLITE.1 });
    }
    Ok(())
}

// Two processes that open a new file at once both want the exclusive lock of this change, and SQLite does not call the busy
// handler for it.
fn use_log(conn: &Connection, path: &Path, timeout: Duration) -> Result<(), OpenError> {
    let mut wait = waiting(timeout.max(Duration::from_secs(1)));
    let mut count = 0;
    let mode: String = loop {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)) {
            Ok(mode) => break mode,
            Err(error) => match opening(path, error) {
                OpenError::Locked { .. } if wait(count) => count += 1,
                error => return Err(error),
            },
        }
    };
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    Err(OpenError::Unsafe { path: path.into(), setting: "journal_mode", found: mode, needed: "wal" })
}

/// Reads back what decides whether a commit survives a crash.
pub(crate) fn check_durability(conn: &Connection, path: &Path) -> Result<(), OpenError> {
    let level: i64 = conn.pragma_query_one(None, "synchronous").map_err(|error| opening(path, error))?;
    // 2 is FULL, 3 is EXTRA.
    if level < 2 {
        let found = level.to_string();
        return Err(OpenError::Unsafe {
            path: path.into(),
            setting: "synchronous",
            found,
            needed: "FULL (2)",
        });
    }
    Ok(())
}

/// Waits for another connection's lock, at first for as short as a commit lasts (SQLite's own handler begins with 1 ms and is
/// soon at 100), for no longer than `timeout` in all.
fn waiting(timeout: Duration) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut began = Instant::now();
    move |count| {
        if count == 0 {
            began = Instant::now();
        }
        let left = timeout.saturating_sub(began.elapsed());
        if left.is_zero() {
            return false;
        }
        let pause = Duration::from_micros(50 << count.clamp(0, 6));
        std::thread::sleep(pause.min(left));
        true
    }
}

/// The file that was opened, as opposed to what its path names by now.
///
/// SQLite goes on writing to a file that was moved, deleted or replaced: every commit would be acknowledged and lost.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl OpenedFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.into(), identity: identity(path) }
    }

    /// Whether the path still names the file.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.identity == identity(&self.path) {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "{:?} was moved, deleted or replaced while it was open: put it back, or restart",
            self.path
        )))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

// Elsewhere an open file cannot be moved or deleted.
#[cfg(not(unix))]
fn identity(_path: &Path) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_sqlite_is_refused_by_both_names() {
        let error = check_sqlite(3_051_002, "3.51.2").unwrap_err().to_string();
        assert!(error.contains("3.51.2") && error.contains("3.51.3"), "{error}");
    }

    #[test]
    fn a_connection_that_does_not_sync_is_refused() {
        let conn = Connection::open_in_memory().unwrap();
        for level in ["OFF", "NORMAL"] {
            conn.pragma_update(None, "synchronous", level).unwrap();
            let refused = check_durability(&conn, Path::new("semel.db"));
            assert!(matches!(refused, Err(OpenError::Unsafe { setting: "synchronous", .. })), "{level}");
        }
        conn.pragma_update(None, "synchronous", "FULL").unwrap();
        check_durability(&conn, Path::new("semel.db")).unwrap();
    }
}
