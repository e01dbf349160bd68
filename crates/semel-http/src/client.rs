//! Sends requests to one host.

use crate::connector::Connector;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::tls::{ClientTls, ClientTlsFiles, TlsError};
use bytes::Bytes;
use http::response::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::error::Error as _;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How a [`Client`] behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// From the call to the last byte of the answer that is waited for. Default 10 s.
    pub deadline: Duration,
    /// The longest answer that is read. Default 64 KiB.
    pub longest_answer: usize,
    /// How many idle connections are kept. Default 32.
    pub idle_connections: usize,
    /// For how long. Default 30 s.
    pub idle_for: Duration,
    /// What happens to a request whose connection broke. Default [`Resend::Never`].
    pub resend: Resend,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            longest_answer: 64 * 1024,
            idle_connections: 32,
            idle_for: Duration::from_secs(30),
            resend: Resend::Never,
        }
    }
}

/// Whether a request whose connection broke is sent again. The other side may have closed an idle connection just then, which
/// cannot be told from a request that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// It fails.
    Never,
    /// It is sent once more: for requests that do no harm when they are received twice.
    Once,
}

/// How long the rest of an answer is waited for whose head is all that counts. It mostly comes with the head; a connection whose
/// answer was read can be used for the next request at once.
const REST_AT_ONCE: Duration = Duration::from_millis(10);

/// How long it is read in the background after that.
const REST_WITHIN: Duration = Duration::from_secs(2);

/// Sends requests to the host of one [`Endpoint`]. Clones share connections. Redirects are not followed.
#[derive(Clone)]
pub struct Client {
    inner: legacy::Client<Connector, Full<Bytes>>,
    authority: Arc<str>,
    options: Options,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("authority", &self.authority).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for the endpoint's host. For `https` it trusts the authorities of `tls`, by default the system's. To be called within
    /// a runtime.
    ///
    /// # Errors
    /// The files for TLS cannot be used. Nothing is connected yet.
    pub fn new(endpoint: &Endpoint, tls: ClientTlsFiles, options: Options) -> Result<Self, TlsError> {
        let tls = match endpoint.is_https() {
            true => Some(Arc::new(ClientTls::start(tls)?)),
            false => None,
        };
        let inner = legacy::Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(options.idle_connections)
            .pool_idle_timeout(options.idle_for)
            .pool_timer(TokioTimer::new())
            .retry_canceled_requests(options.resend == Resend::Once)
            .build(Connector::new(endpoint, tls));
        Ok(Self { inner, authority: endpoint.authority().into(), options })
    }

    /// Sends a request and reads the whole answer. Dropping the future closes the connection.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, Error> {
        self.send_and_read_if(request, |_| true).await
    }

    /// Sends a request, and reads the body of the answer if its head says that it counts. Otherwise the body is left, and empty in what
    /// is returned.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send_and_read_if(
        &self,
        request: Request<Bytes>,
        body_counts: impl FnOnce(&Parts) -> bool,
    ) -> Result<Response<Bytes>, Error> {
        let answered = async {
            let (head, body) = self.exchange(request).await?.into_parts();
            if !body_counts(&head) {
                return Ok(Response::from_parts(head, Bytes::new()));
            }
            let limit = self.options.longest_answer;
            let body = Limited::new(body, limit).collect().await.map_err(|error| {
                let authority = self.authority.to_string();
                match error.is::<LengthLimitError>() {
                    true => Error::TooLong { authority, limit },
                    false => Error::Truncated { authority, error },
                }
            })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        self.in_time(answered).await
    }

    /// Sends a request and returns the head of the answer, which is all that counts. The rest is read in the background, so that the
    /// connection can be used again; whoever holds it back loses the connection.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send_for_head(&self, request: Request<Bytes>) -> Result<Parts, Error> {
        let (head, body) = self.in_time(self.exchange(request)).await?.into_parts();
        let limit = self.options.longest_answer;
        let mut rest = Box::pin(Limited::new(body, limit).collect());
        if timeout(REST_AT_ONCE, &mut rest).await.is_err() {
            tokio::spawn(async move { drop(timeout(REST_WITHIN, rest).await) });
        }
        Ok(head)
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Incoming>, Error> {
        let again = (self.options.resend == Resend::Once).then(|| request.clone());
        match (self.try_once(request).await, again) {
            (Err(Error::Broken { .. }), Some(request)) => self.try_once(request).await,
            (answered, _) => answered,
        }
    }

    async fn try_once(&self, request: Request<Bytes>) -> Result<Response<Incoming>, Error> {
        self.inner.request(request.map(Full::new)).await.map_err(|error| {
            let authority = self.authority.to_string();
            match error.is_connect() {
                true => Error::Connect { authority, error: connect_error(&error) },
                false => Error::Broken { authority, error: error.into() },
            }
        })
    }

    async fn in_time<T>(&self, answered: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let after = self.options.deadline;
        let late = |_| Error::Timeout { authority: self.authority.to_string(), after };
        timeout(after, answered).await.map_err(late)?
    }
}

/// What the connector failed with; the client wraps it.
fn connect_error(error: &legacy::Error) -> io::Error {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return io::Error::new(error.kind(), error.to_string());
        }
        source = error.source();
    }
    io::Error::other(error.to_string())
}
