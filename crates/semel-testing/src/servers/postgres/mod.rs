//! PostgreSQL.

mod cluster;
mod installed;

pub use cluster::{Cluster, Stop};
pub use installed::{Installed, POSTGRES_BIN, is_root, postgres_bin, search_path};
