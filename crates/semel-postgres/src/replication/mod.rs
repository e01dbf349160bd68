//! How acknowledged commits outlive a failover: declared by the operator, verified at the start, and watched.

mod risk;
mod standby_names;
mod standing;

pub use risk::Risk;
pub(crate) use standing::{Declared, Standing, current, required};

/// What becomes of acknowledged commits if the server is lost and another one takes its place.
///
/// Nothing that the server says can tell the last two apart from a setup that loses commits, so it is declared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Replication {
    /// No other server ever takes its place: it comes back with its own disk, or from a backup with the service stopped. Standbys, if there are
    /// any, are for reading.
    None,
    /// A commit is acknowledged once a synchronous standby has it on disk, and only such a standby is promoted.
    Synchronous,
    /// The storage below the server is replicated synchronously, and whichever server takes over works on the same data: a block device that
    /// is mirrored, or a managed service built that way.
    Storage,
}
