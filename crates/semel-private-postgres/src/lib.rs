//! A PostgreSQL server of one's own, for tests and measurements: in a temporary directory, on a free port, gone afterwards.
//!
//! Never a server that happens to run. A test that stops its server, crashes it or makes it a standby has to have one that nobody
//! else uses; those that only need a database share the one that `cargo xtask test` starts, which is made here too.
//!
//! ```no_run
//! # fn main() -> Result<(), String> {
//! use semel_private_postgres::{Cluster, Stop};
//!
//! let server = Cluster::start(&["fsync = on"])?;
//! println!("{}", server.url("postgres"));
//! server.stop(Stop::Immediate)?;
//! server.start_again()?;
//! # Ok(())
//! # }
//! ```

mod cluster;
mod directory;
mod installed;

pub use cluster::{Cluster, Stop};
pub use directory::{Directory, free_port};
pub use installed::{BIN, Installed, is_root, postgres_bin, search_path};
