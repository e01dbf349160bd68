//! What a handler sees of the operation that it executes: its identity, its phases, and ways to finish it in a transaction of its own.

mod operation;
mod phases;
#[cfg(feature = "postgres")]
mod postgres;
mod reply;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod same_transaction;
#[cfg(feature = "sqlite")]
mod sqlite;

pub(crate) use operation::FinishedInside;
#[cfg(feature = "axum")]
pub use operation::NotProtected;
pub use operation::Operation;
pub use phases::PhasesError;
pub use reply::{Replayable, Reply};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub use same_transaction::CompleteError;
