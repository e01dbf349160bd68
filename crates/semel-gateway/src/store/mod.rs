//! The store that a configuration names, and the outbox beside its records.

#[cfg(feature = "fail-points")]
mod fail_points;
mod outbox;
mod url;

pub use outbox::Outbox;
pub use semel_postgres::{Replication, Risk};
pub use url::{OpenStoreError, OpenedStore, StoreUrl, StoreUrlError};
