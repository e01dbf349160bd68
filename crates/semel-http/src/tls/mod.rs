//! TLS by rustls, with certificates and keys from files.
//!
//! - `files.rs`: certificates and keys in PEM files;
//! - `reloading.rs`: reloads what is made of files when they change;
//! - `client.rs`: the client's side of a connection.

mod client;
mod files;
mod reloading;

pub use client::{ClientTls, ClientTlsFiles};
pub use files::{PemFile, TlsError, TlsSetting, key_mismatch};
pub use reloading::{FromFiles, Reloading};

use rustls::crypto::CryptoProvider;
use std::sync::Arc;
use std::time::Duration;

/// How often files are checked for changes by default.
pub const CHECK_EVERY: Duration = Duration::from_secs(10);

/// HTTP/1.1 in ALPN.
pub const HTTP1: &[u8] = b"http/1.1";
/// HTTP/2 in ALPN.
pub const HTTP2: &[u8] = b"h2";

/// The one crypto provider, named explicitly, so that nothing else in the program can change it.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
