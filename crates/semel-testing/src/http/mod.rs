//! HTTP as tests speak it: clients that can send what no library would, and services behind the layer or the gateway.
//!
//! [`once`] sends one request per connection and reads the response to the end. [`connection`] keeps a connection open, and reads a
//! response piece by piece.

pub mod connection;
pub mod once;
mod server;
mod service;
mod till;

pub use server::Server;
pub use service::Service;
pub use till::Till;
