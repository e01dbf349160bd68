//! Redis: one server, a Cluster, and a server that Sentinels watch.

mod cluster;
mod sentinel;
mod server;

pub use cluster::RedisCluster;
pub use sentinel::RedisSentinel;
pub use server::{Redis, redis_server};
