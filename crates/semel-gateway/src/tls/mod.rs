//! TLS with clients and with the service, by rustls.
//!
//! - `files.rs`: certificates and keys, as they are in files;
//! - `reloading.rs`: follows the files;
//! - `server.rs`, `client.rs`: what is made of them, towards clients and towards the service;
//! - `identity.rs`: whom a client's certificate is about.

mod client;
mod files;
mod identity;
mod reloading;
mod server;

pub use client::{ClientTls, ClientTlsFiles};
pub use files::{TlsError, TlsSetting};
pub(crate) use identity::identity_of;
pub use server::{ClientCertificates, ServerTls, ServerTlsFiles};

use rustls::crypto::CryptoProvider;
use std::sync::Arc;
use std::time::Duration;

/// How often the files are looked at by default.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// The protocols, as ALPN calls them.
pub(crate) const HTTP1: &[u8] = b"http/1.1";
pub(crate) const HTTP2: &[u8] = b"h2";

/// The one provider, named wherever one is wanted: what else is in the program cannot change it.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
