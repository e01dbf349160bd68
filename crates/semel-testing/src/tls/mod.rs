//! Certificates, and a server that speaks HTTP over TLS.
#![allow(clippy::expect_used, reason = "what goes wrong here fails the test")]

mod certificates;
mod server;
mod tunnel;

pub use certificates::{Authority, Issued};
pub use server::HttpsServer;
pub use tunnel::TlsTunnel;
