//! Message brokers of one's own, for tests and measurements: in temporary directories, on free ports, gone afterwards.
//!
//! Never a broker that happens to run. A test that kills its broker has to have one that nobody else uses; those that only need
//! a stream or a queue share the ones that `cargo xtask test` starts, which are made here too.
//!
//! ```no_run
//! # fn main() -> Result<(), String> {
//! let mut broker = semel_private_brokers::Nats::start()?;
//! println!("{}", broker.url());
//! broker.kill()?;
//! broker.start_again()?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod nats;
mod rabbitmq;

pub use nats::{NATS_SERVER, Nats, nats_server};
pub use rabbitmq::{RabbitMq, rabbitmq_server};
