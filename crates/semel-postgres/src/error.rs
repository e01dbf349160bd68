//! What can go wrong: when the store is opened, when a call fails, and when an application shares its transaction.

use semel::StoreError;
use semel::transition::Refusal;
use sqlx::postgres::{PgDatabaseError, PgSeverity};
use std::io::ErrorKind;

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
    /// The server acknowledges commits before a standby has them on disk.
    #[error(
        "synchronous_commit is {setting} for this role or database: a commit is acknowledged before standbys have it on disk; set it to on (ALTER ROLE … SET synchronous_commit = on)"
    )]
    WeakCommits {
        /// The setting: `local` or `remote_write`.
        setting: String,
    },
    /// The server only speaks PostgreSQL's protocol.
    #[error(
        "{product} is not PostgreSQL: it speaks the protocol, but its locks, commits and WITH statements do not do what reserving a key once depends on; use PostgreSQL 13 or newer"
    )]
    NotPostgres {
        /// Which product it is, or what it reports.
        product: String,
    },
    /// The server is replicated, and nothing says how.
    #[error(
        "{seen}, and it is not declared whether a failover can lose commits: say replication = \"synchronous\" in [store] if commits wait for a standby and only such a standby is promoted, \"storage\" if the storage below is replicated, \"none\" if no standby ever takes over, or dangerously_accept_asynchronous_replication = true if a failover may lose acknowledged outcomes and execute again (in Rust: PgOptions::replication)"
    )]
    ReplicationUndeclared {
        /// What shows it.
        seen: String,
    },
    /// Several hosts, and declared that none takes over.
    #[error(
        "the URL names several hosts, and replication = \"none\" says that none of them ever takes over: name one host, or say replication = \"synchronous\" or \"storage\""
    )]
    SeveralHosts,
    /// Declared as synchronous, and it is not.
    #[error(
        "replication = \"synchronous\" does not hold: {why}; name the standbys, as in synchronous_standby_names = 'ANY 1 (standby1, standby2)' (Patroni: synchronous_mode: true), and start them"
    )]
    NotSynchronous {
        /// What is missing.
        why: String,
    },
    /// Declared as synchronous, and the role cannot see whether it is.
    #[error(
        "replication = \"synchronous\" cannot be verified, as the role may not see the state of standbys: GRANT pg_read_all_stats TO \"{role}\""
    )]
    StandbysHidden {
        /// The role.
        role: String,
    },
    /// None of the hosts takes writes.
    #[error("none of the hosts is a primary that takes writes: {hosts}")]
    NoPrimary {
        /// What each of them answered.
        hosts: String,
    },
    /// Two hosts take writes.
    #[error(
        "both {first} and {second} take writes (split brain): one of them will be given up, with what is written to it; stop it before anything is written"
    )]
    TwoPrimaries {
        /// One host.
        first: String,
        /// The other one.
        second: String,
    },
    /// A host belongs to another database system.
    #[error(
        "{host} belongs to the database system {found}, and {expected} is expected: it is no standby or primary of the same data"
    )]
    AnotherSystem {
        /// The host.
        host: String,
        /// Its system identifier.
        found: String,
        /// That of the others, or of before.
        expected: String,
    },
    /// A host was left behind by a failover.
    #[error(
        "{host} takes writes on timeline {found}, and timeline {highest} was seen: it was left behind by a failover, and lacks what was acknowledged since; rewind or rebuild it"
    )]
    LeftBehind {
        /// The host.
        host: String,
        /// Its timeline.
        found: i32,
        /// The highest that was seen.
        highest: i32,
    },
    /// The server is starting, or shutting down.
    #[error("the server does not accept connections yet: {0}")]
    Starting(String),
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
        "synchronous_commit is neither on nor remote_apply in this transaction: its commit could be lost after it was acknowledged"
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

impl From<ActError> for CommitError {
    fn from(error: ActError) -> Self {
        match error {
            ActError::Refused(refusal) => Self::Refused(refusal),
            error => Self::Store(error.into_store_error()),
        }
    }
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
        // statement_completion_unknown: said by the server, or by a proxy in front of it.
        _ if sqlstate(error).as_deref() == Some("40003") => false,
        sqlx::Error::Database(answer) => answer
            .try_downcast_ref::<PgDatabaseError>()
            .is_some_and(|answer| !matches!(answer.severity(), PgSeverity::Fatal | PgSeverity::Panic)),
        // Before anything is sent.
        sqlx::Error::Encode(_) | sqlx::Error::InvalidArgument(_) => true,
        _ => false,
    };
    if rolled_back { unavailable(error) } else { StoreError::Lost(error.to_string()) }
}

/// Whether a server that fails to connect like this may be starting.
pub(crate) fn may_be_starting(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() == ErrorKind::ConnectionRefused,
        sqlx::Error::Database(answer) => answer.is_transient_in_connect_phase(),
        _ => false,
    }
}

/// Why no connection could be made to the server at this address.
pub(crate) fn explained(error: sqlx::Error, address: &str) -> OpenError {
    match error {
        sqlx::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            OpenError::ConnectionRefused { address: address.to_owned() }
        }
        sqlx::Error::Database(answer) if answer.is_transient_in_connect_phase() => {
            OpenError::Starting(answer.message().to_owned())
        }
        sqlx::Error::Database(answer) => OpenError::Rejected(answer.message().to_owned()),
        error => error.into(),
    }
}

pub(crate) fn sqlstate(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(|code| code.into_owned())
}
