//! The HTTP client for everything outside that Semel calls: polls, webhook receivers, forward-auth, OTLP collectors, JWKS, and the
//! admin API from the command line.
//!
//! - [`Endpoint`]: where requests go. Nothing in a request changes the host.
//! - [`Client`]: sends them, over plain TCP or TLS, on connections that are kept alive; with a deadline, and a limit on what is read.
//! - [`tls`]: certificates from files that are reloaded when they change.
//! - [`webhook`]: signatures of messages that go out, and of those that come in.
//!
//! The gateway's path to the service it protects is not here: that one has to know whether a byte was sent.
//!
//! ```no_run
//! use semel_http::{Client, Endpoint, Options};
//! use semel_http::tls::ClientTlsFiles;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = Endpoint::parse("https://bank.example/status")?;
//! let client = Client::new(&endpoint, ClientTlsFiles::default(), Options::default())?;
//! let answer = client.send(endpoint.get(endpoint.path()).body(Default::default())?).await?;
//! println!("{}", answer.status());
//! # Ok(()) }
//! ```

mod causes;
mod client;
mod connector;
mod endpoint;
mod error;
pub mod tls;
pub mod webhook;

pub use causes::with_causes;
pub use client::{Client, Options, Resend};
pub use endpoint::{Endpoint, InvalidEndpoint};
pub use error::Error;

/// The README's example is a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
