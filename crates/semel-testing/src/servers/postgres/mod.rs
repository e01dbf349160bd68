//! PostgreSQL.

mod cluster;
mod installed;
mod pgbouncer;

pub use cluster::{Cluster, Stop};
pub use installed::{Installed, postgres_bin};
pub(super) use pgbouncer::PgBouncer;
pub use pgbouncer::pgbouncer;
