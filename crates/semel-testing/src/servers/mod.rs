//! Servers for tests and measurements: in temporary directories, on free ports, gone afterwards.
//!
//! Tests that only need a database, a cache, a stream or a queue share one [`Server`], which starts when it is first asked for. A test that
//! stops, crashes or kills its server starts one of its own:
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
mod dynamodb_local;
mod dynoxide;
mod nats;
mod postgres;
mod programs;
mod rabbitmq;
mod redis;
mod shared;
mod variables;

pub use directory::{Directory, free_port};
pub use dynamodb_local::{DynamoDbLocal, dynamodb_local};
pub use dynoxide::{Dynoxide, dynoxide};
pub use nats::{Nats, nats_server};
pub use postgres::{Cluster, Installed, Stop, pgbouncer, postgres_bin};
pub use programs::{is_root, python_tools, search_path, tools};
pub use rabbitmq::{RabbitMq, rabbitmq_server};
pub use redis::{Redis, RedisCluster, RedisSentinel, redis_server};
pub use shared::{Host, Server};
pub use variables::{
    DYNAMODB_URL, DYNOXIDE, HOST, NATS_SERVER, NATS_URL, PGBOUNCER_URL, POSTGRES_BIN, POSTGRES_URL,
    PYTHON_TOOLS, RABBITMQ_URL, REDIS_SERVER, REDIS_URL,
};
