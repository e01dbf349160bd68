//! TLS with clients, and with the service.
//!
//! - `server.rs`: the server's side, towards clients;
//! - `identity.rs`: whom a client's certificate is about.
//!
//! Certificates in files and the client's side are `semel_http`'s.

mod identity;
mod server;

pub(crate) use identity::identity_of;
pub use semel_http::tls::{CHECK_EVERY, ClientTls, ClientTlsFiles, TlsError, TlsSetting};
pub(crate) use semel_http::tls::{HTTP1, HTTP2};
pub use server::{ClientCertificates, ServerTls, ServerTlsFiles};
