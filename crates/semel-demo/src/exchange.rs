//! One HTTP request over one connection, so that nothing is retried or shared behind our back.

use bytes::Bytes;
use http::request::Builder;
use http::{Method, Response};
use semel_http::tls::{ClientTlsFiles, TlsError};
use semel_http::{Client, Endpoint, InvalidEndpoint, Options, Resend};
use std::net::SocketAddr;
use std::time::Duration;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    #[error(transparent)]
    NoAnswer(#[from] semel_http::Error),
    #[error("cannot build the request: {0}")]
    Request(#[from] http::Error),
    #[error("invalid address: {0}")]
    Address(#[from] InvalidEndpoint),
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The longest answer that is read: none of the demo's comes close.
const LONGEST: usize = 64 * 1024 * 1024;

/// Another process of the demo, to send one request to.
pub(crate) struct Peer {
    endpoint: Endpoint,
    client: Client,
}

impl Peer {
    /// The process at an address; an answer that takes longer than the deadline is an error.
    pub(crate) fn at(address: SocketAddr, deadline: Duration) -> Result<Self, ExchangeError> {
        let endpoint = Endpoint::parse(&format!("http://{address}"))?;
        let options = Options {
            deadline,
            longest_answer: LONGEST,
            idle_connections: 0,
            resend: Resend::Never,
            ..Options::default()
        };
        let client = Client::new(&endpoint, ClientTlsFiles::default(), options)?;
        Ok(Self { endpoint, client })
    }

    /// A request to this process.
    pub(crate) fn request(&self, method: Method, path: &str) -> Builder {
        self.endpoint.request(method, path)
    }

    /// Sends a request and waits for its answer. Dropping the future hangs up.
    pub(crate) async fn send(
        &self,
        request: Builder,
        body: String,
    ) -> Result<Response<Bytes>, ExchangeError> {
        Ok(self.client.send(request.body(body.into())?).await?)
    }
}
