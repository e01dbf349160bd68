//! What goes wrong with Redis.

use redis::{ErrorKind, RedisError};

/// Why Redis did not do what it was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Trouble {
    /// It did not answer within the timeout.
    Timeout,
    /// There is no connection.
    Connection,
    /// It reads its own data first (`LOADING`).
    Loading,
    /// The Cluster is being changed, or has no master for some keys (`MOVED`, `ASK`, `TRYAGAIN`, `CLUSTERDOWN`).
    Moved,
    /// It is a replica, or cannot write (`READONLY`, `MISCONF`, `NOREPLICAS`, `MASTERDOWN`).
    ReadOnly,
    /// Its memory is full, and it evicts nothing (`OOM`).
    OutOfMemory,
    /// The user may not do this (`NOAUTH`, `WRONGPASS`, `NOPERM`).
    NotAllowed,
    /// Another error, or an answer that fits no question.
    Answer,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Timeout,
        Self::Connection,
        Self::Loading,
        Self::Moved,
        Self::ReadOnly,
        Self::OutOfMemory,
        Self::NotAllowed,
        Self::Answer,
    ];

    /// Its name, as metrics spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Connection => "connection",
            Self::Loading => "loading",
            Self::Moved => "moved",
            Self::ReadOnly => "read_only",
            Self::OutOfMemory => "out_of_memory",
            Self::NotAllowed => "not_allowed",
            Self::Answer => "answer",
        }
    }
}

impl From<&RedisError> for Trouble {
    fn from(error: &RedisError) -> Self {
        match error.code() {
            Some("LOADING") => return Self::Loading,
            Some("MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "CROSSSLOT") => return Self::Moved,
            Some("READONLY" | "MISCONF" | "NOREPLICAS" | "MASTERDOWN") => return Self::ReadOnly,
            Some("OOM") => return Self::OutOfMemory,
            Some("NOAUTH" | "WRONGPASS" | "NOPERM") => return Self::NotAllowed,
            _ => {}
        }
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::NotAllowed,
            ErrorKind::ClusterConnectionNotFound => Self::Moved,
            _ if error.is_timeout() => Self::Timeout,
            _ if error.is_io_error() || error.is_connection_dropped() => Self::Connection,
            _ => Self::Answer,
        }
    }
}
