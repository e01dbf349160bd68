//! What can go wrong: when the file is opened, and when an application shares the store's transaction.

use semel::transition::Refusal;
use semel::{OperationId, StoreError};
use std::path::PathBuf;

/// Why a file was not opened as a store. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A path that names no durable file.
    #[error(
        "{path:?} is not a durable file: give a plain path, such as semel.db (for tests without a file there is the memory store)"
    )]
    NotDurable {
        /// The path as given.
        path: PathBuf,
    },
    /// The directory of the file is not there.
    #[error(
        "the directory {directory:?} does not exist: create it first, or choose another path for the store"
    )]
    NoDirectory {
        /// The missing directory.
        directory: PathBuf,
    },
    /// The path is a directory.
    #[error("{path:?} is a directory: name a file in it, such as {path:?}/semel.db")]
    IsDirectory {
        /// The path as given.
        path: PathBuf,
    },
    /// The file can be read, but not written.
    #[error(
        "{path:?} cannot be written: give the user of this process write access to the file and to its directory"
    )]
    ReadOnly {
        /// The path as given.
        path: PathBuf,
    },
    /// The file is no SQLite database.
    #[error("{path:?} is not a SQLite file: choose another path, or move that file away")]
    NotADatabase {
        /// The path as given.
        path: PathBuf,
    },
    /// The file is a database of another application.
    #[error(
        "{path:?} is a database of another application: choose another path, or allow it with SqliteOptions::share_database_file()"
    )]
    NotOurs {
        /// The path as given.
        path: PathBuf,
    },
    /// The file was written by a newer version.
    #[error(
        "{path:?} has schema version {found}, this program knows versions up to {known}: run a newer version of Semel on it"
    )]
    Newer {
        /// The path as given.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The SQLite library is too old.
    #[error(
        "SQLite {found} is too old: {needed} or newer is needed, for earlier ones can corrupt the file when the log is reset; build with rusqlite's bundled SQLite"
    )]
    SqliteTooOld {
        /// The version that is linked.
        found: &'static str,
        /// The oldest version that will do.
        needed: &'static str,
    },
    /// A setting that keeps commits safe did not take effect.
    #[error("{path:?}: PRAGMA {setting} is {found}, and {needed} is needed for commits that survive a crash")]
    Unsafe {
        /// The path as given.
        path: PathBuf,
        /// The setting.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it has to be.
        needed: &'static str,
    },
    /// Another process held the file for too long.
    #[error("{path:?} is locked by another process: try again, or find out who holds it (fuser, lsof)")]
    Locked {
        /// The path as given.
        path: PathBuf,
    },
    /// Anything else that SQLite reports.
    #[error("{path:?} could not be opened")]
    Sqlite {
        /// The path as given.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// The operating system gave no thread.
    #[error("a thread of the store could not be started")]
    Thread(#[source] std::io::Error),
}

/// Why an act inside a transaction changed nothing. Return it with `?`, so that the domain statements are rolled back too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// The state machine refused it: the caller is no longer the owner, or the act is not possible any more.
    #[error("the state machine refused the write: {0:?}")]
    Refused(Refusal),
    /// The connection is in no write transaction.
    #[error("the connection has no open write transaction: begin one with BEGIN IMMEDIATE")]
    NoWriteTransaction,
    /// The connection would acknowledge commits that are not on disk.
    #[error("the connection's commits are not durable: it needs PRAGMA synchronous=FULL")]
    NotDurable,
    /// What is stored, or what is to be stored, cannot be right.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// SQLite failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

/// Why a transaction left nothing behind (or, with [`StoreError::Lost`], may have).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError<E> {
    /// The application's closure failed; what it wrote is rolled back.
    #[error("the application's work failed, and the transaction was rolled back")]
    Application(E),
    /// The completion was refused; what the closure wrote is rolled back.
    #[error("the state machine refused the write: {0:?}")]
    Refused(Refusal),
    /// The closure panicked; what it wrote is rolled back.
    #[error("the application's closure panicked: {0}")]
    Panicked(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What went wrong inside the writer's transaction, and whom it concerns.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This job alone; the others can be done without it.
    Job(StoreError),
    /// The transaction as a whole.
    Group(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => Self::Job(StoreError::Damaged(error.to_string())),
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig) => {
                Self::Job(StoreError::Unavailable(format!("the record cannot be written: {error}")))
            }
            // A large record may have no room where small ones do.
            Some(ErrorCode::DiskFull) => Self::Job(unavailable(&error)),
            // No error of SQLite's: what was read is not what it should be.
            None => Self::Job(StoreError::Damaged(error.to_string())),
            Some(_) => Self::Group(error),
        }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Job(error)
    }
}

impl From<Fault> for ActError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Job(error) => Self::Store(error),
            Fault::Group(error) => Self::Sqlite(error),
        }
    }
}

/// The error of a call that wrote nothing, for certain.
pub(crate) fn unavailable(error: &rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => {
            StoreError::Unavailable("another connection held the lock on the file for too long".into())
        }
        Some(ErrorCode::DiskFull) => {
            StoreError::Unavailable("the disk is full, or the file has reached its size limit".into())
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

pub(crate) fn damaged(id: OperationId, what: &str) -> StoreError {
    StoreError::Damaged(format!("operation {id}: {what}"))
}
