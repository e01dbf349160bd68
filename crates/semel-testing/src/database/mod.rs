//! PostgreSQL databases of tests, and proxies on the way to them.

mod empty;
mod proxy;
mod statements;
mod transactions;
mod way;

pub use empty::Database;
pub use proxy::{Cut, Proxy};
pub use way::{Passing, Way};
