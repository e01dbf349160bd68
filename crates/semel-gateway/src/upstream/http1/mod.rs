//! Connections of HTTP/1.1 to the service.

mod connection;
mod pool;

pub(super) use connection::Connection;
pub(super) use pool::Pool;
