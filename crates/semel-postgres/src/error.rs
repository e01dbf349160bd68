//! What can go wrong: when the store is opened, when a call fails, and when an application shares its transaction.

use semel::StoreError;
use semel::transition::Refusal;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Why a database was not opened as a store. Each message says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The server is a standby.
    #[error("the server is a standby (in recovery), which cannot accept writes: connect to the primary")]
    Standby,
    /// The server does not write to disk what it commits.
    #[error(
        "the server runs with fsync=off: a crash of its machine loses acknowledged outcomes and may corrupt everything; switch it on, or accept that with PgOptions::dangerously_accept_fsync_off()"
    )]
    FsyncOff,
    /// The server acknowledges commits before they are on disk.
    #[error(
        "synchronous_commit is off for this role or database: a crash loses acknowledged outcomes, and a retry executes again; set it to on, or accept that with PgOptions::dangerously_accept_lossy_commits()"
    )]
    LossyCommits,
    /// The server is too old.
    #[error("PostgreSQL {found} is too old: {needed} or newer is needed")]
    TooOld {
        /// The server's version, as it reports it.
        found: i32,
        /// The oldest version that will do.
        needed: i32,
    },
    /// The tables were made by a newer version.
    #[error(
        "the database has schema version {found}, this program knows versions up to {known}: run a newer version of Semel on it"
    )]
    Newer {
        /// The version of the tables.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The tables are missing or old, and the options say not to migrate.
    #[error(
        "the database has schema version {found}, and {known} is needed: run `semel migrate`, or the SQL that `semel migrate --print` prints"
    )]
    NotMigrated {
        /// The version of the tables; 0 without tables.
        found: i64,
        /// The version that is needed.
        known: i64,
    },
    /// The role may not do all that requests need.
    #[error("the role lacks privileges: GRANT {missing} to it")]
    NotAllowed {
        /// Which, as `INSERT on semel_answers, …`.
        missing: String,
    },
    /// The server's clock could not be looked at, or what is believed of it not be written down.
    #[error("the server's clock could not be checked: {0}")]
    Clock(#[source] StoreError),
    /// The connection was refused: nothing listens there.
    #[error(
        "connection refused: {address} (start PostgreSQL there, or write the host and port that it listens on)"
    )]
    ConnectionRefused {
        /// Host and port, or the path of the socket.
        address: String,
    },
    /// The server does not answer.
    #[error(
        "no answer from {address} within {after:?}: is the host right, and does a firewall let this machine through?"
    )]
    Silent {
        /// Host and port, or the path of the socket.
        address: String,
        /// How long it was waited for.
        after: std::time::Duration,
    },
    /// The server refuses the connection: an unknown role or database, a wrong password.
    #[error("the server refuses the connection: {0}")]
    Rejected(String),
    /// The URL cannot be understood.
    #[error("the URL is not a PostgreSQL URL, such as postgres://user:password@host:5432/database")]
    Url(#[source] sqlx::Error),
    /// Anything else that the server or the connection reports.
    #[error("the database could not be opened")]
    Sqlx(#[from] sqlx::Error),
}

/// Why an act inside a transaction changed nothing. Return it with `?`, so that the domain statements are rolled back too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// The state machine refused it: the caller is no longer the owner, or the act is not possible any more.
    #[error("the state machine refused the write: {0:?}")]
    Refused(Refusal),
    /// The connection is in no transaction.
    #[error(
        "the connection has no open transaction: begin one with sqlx (`pool.begin()`), and commit it after the act"
    )]
    NoTransaction,
    /// The transaction would be acknowledged before it is on disk.
    #[error(
        "synchronous_commit is off in this transaction: its commit could be lost after it was acknowledged"
    )]
    NotDurable,
    /// What is stored, or what is to be stored, cannot be right.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server or the connection failed.
    #[error(transparent)]
    Sqlx(#[from] sqlx::Error),
}

/// Why a transaction was not committed together with an act (or, with [`StoreError::Lost`], may have been).
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The state machine refused the act; everything is rolled back.
    #[error("the state machine refused the write: {0:?}")]
    Refused(Refusal),
    /// The server or the connection failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ActError {
    /// As an error of the store's. Before the commit nothing is written, whatever it was.
    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::Sqlx(error) => unavailable(&error),
            error => StoreError::Unavailable(error.to_string()),
        }
    }
}

/// The error of a call that wrote nothing, for certain.
pub(crate) fn unavailable(error: &sqlx::Error) -> StoreError {
    match sqlstate(error).as_deref() {
        // What the server itself finds broken: data_corrupted, index_corrupted.
        Some("XX001" | "XX002") => StoreError::Damaged(error.to_string()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

/// The error of a statement that commits by itself, or of a COMMIT.
///
/// An ERROR is the server's word that the transaction was rolled back. After anything else (the connection was cut, or the
/// server ended it with a FATAL, which may come between the commit and its acknowledgement) it is unknown.
pub(crate) fn of_a_commit(error: &sqlx::Error) -> StoreError {
    let rolled_back = match error {
        sqlx::Error::Database(answer) => answer
            .try_downcast_ref::<PgDatabaseError>()
            .is_some_and(|answer| !matches!(answer.severity(), PgSeverity::Fatal | PgSeverity::Panic)),
        // Before anything is sent.
        sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => true,
        _ => false,
    };
    if rolled_back { unavailable(error) } else { StoreError::Lost(error.to_string()) }
}

pub(crate) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(|code| code.into_owned())
}
