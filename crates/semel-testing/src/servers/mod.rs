//! Servers for tests and measurements: in temporary directories, on free ports, gone afterwards.
//!
//! A test that stops, crashes or kills its server has to have one that nobody else uses: it starts one here. Tests that only need a
//! database, a stream or a queue share one.
//!
//! ```no_run
//! # fn main() -> Result<(), String> {
//! use semel_testing::servers::{Cluster, Nats, Stop};
//!
//! let server = Cluster::start(&["fsync = on"])?;
//! println!("{}", server.url("postgres"));
//! server.stop(Stop::Immediate)?;
//! server.start_again()?;
//!
//! let mut broker = Nats::start()?;
//! broker.kill()?;
//! broker.start_again()?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod directory;
mod nats;
mod postgres;
mod rabbitmq;

pub use directory::{Directory, free_port};
pub use nats::{NATS_SERVER, Nats, nats_server};
pub use postgres::{Cluster, Installed, POSTGRES_BIN, Stop, is_root, postgres_bin, search_path};
pub use rabbitmq::{RabbitMq, rabbitmq_server};
