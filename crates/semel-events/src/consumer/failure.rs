//! Why a message was not handled, and what follows from it.

use crate::inbox::{InboxError, InvalidIdentity};
use semel::StoreError;

/// Why a message was not handled, and what follows from it. The text goes to the log and to the dead letter: no secrets in it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// Not now: what it needs cannot be reached, or another delivery of it is under way. Nothing is counted against the message, it is
    /// tried on.
    #[error("retry later: {0}")]
    NotNow(String),
    /// It failed. It is tried again, and after the last time set aside.
    #[error("failed: {0}")]
    Failed(String),
    /// It can never succeed: what it says makes no sense. It is set aside at once.
    #[error("refused: {0}")]
    Refused(String),
}

impl<E: Into<Self>> From<InboxError<E>> for Failure {
    fn from(error: InboxError<E>) -> Self {
        match error {
            InboxError::Application(error) => error.into(),
            // The second and the third are nothing that the message can help; the log says what to do.
            InboxError::InProgress => Self::NotNow(InboxError::<Self>::InProgress.to_string()),
            InboxError::NotDurable => Self::NotNow(InboxError::<Self>::NotDurable.to_string()),
            InboxError::NoTransaction => Self::NotNow(InboxError::<Self>::NoTransaction.to_string()),
            InboxError::Identity(error) => error.into(),
            InboxError::Refused(why) => Self::Failed(why),
            InboxError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidIdentity> for Failure {
    fn from(error: InvalidIdentity) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::Failed(error.to_string()),
            _ => Self::NotNow(error.to_string()),
        }
    }
}

/// A connection, a pool, a server or a table that is not there now is no failure of the message: else a deploy in the wrong order would
/// set all of them aside. What the server says about values is.
#[cfg(feature = "postgres")]
impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        use sqlx::Error;
        if let Some(why) = crate::inbox::passed_over(&error) {
            return Self::Failed(why);
        }
        let of_the_moment = match &error {
            Error::Database(refusal) => crate::inbox::passes(refusal.code().as_deref()),
            Error::Io(_) | Error::Tls(_) | Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed => {
                true
            }
            _ => false,
        };
        if of_the_moment { Self::NotNow(error.to_string()) } else { Self::Failed(error.to_string()) }
    }
}

/// A file that is locked, full, read-only or away, or without a table, is no failure of the message; what SQLite says about values is.
#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure,
            Unknown,
        };
        match error.sqlite_error_code() {
            // Unknown is what statements get that do not fit the tables.
            Some(
                CannotOpen | DatabaseBusy | DatabaseLocked | DiskFull | PermissionDenied | ReadOnly
                | SystemIoFailure | Unknown,
            ) => Self::NotNow(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
