//! A client of the demo: one request, one connection.

use super::part::service::{Order, PROVIDER_MODE};
use crate::exchange::{ExchangeError, Peer};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use semel::headers::{IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

/// One request, as it is shown and as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) account: Option<&'static str>,
    pub(super) key: Option<&'static str>,
    pub(super) body: String,
    /// How the provider is to misbehave.
    pub(super) mode: Option<&'static str>,
}

impl Request {
    /// Asks for a payment.
    pub(super) fn pay(account: &'static str, key: Option<&'static str>, order: &Order) -> Self {
        let Order { amount, currency, merchant_reference } = order;
        let body = format!(
            r#"{{"amount":"{amount}","currency":"{currency}","merchant_reference":"{merchant_reference}"}}"#
        );
        Self { method: Method::POST, path: "/payments".into(), account: Some(account), key, body, mode: None }
    }

    /// Anything else.
    pub(super) fn plain(method: Method, path: &str, body: String) -> Self {
        Self { method, path: path.into(), account: None, key: None, body, mode: None }
    }

    pub(super) fn with_provider(mut self, mode: &'static str) -> Self {
        self.mode = Some(mode);
        self
    }

    /// The same request, on a day on which the provider behaves: if it were carried out again, that would be another charge.
    pub(super) fn again(&self) -> Self {
        Self { mode: None, ..self.clone() }
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) replayed: bool,
    pub(super) retry_after: Option<String>,
    pub(super) body: Bytes,
}

impl Answer {
    fn new(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Self {
        let header =
            |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            status,
            replayed: header(IDEMPOTENT_REPLAYED).as_deref() == Some("true"),
            retry_after: header(RETRY_AFTER),
            body,
        }
    }

    /// A string member of the body.
    pub(super) fn member(&self, name: &str) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        body.get(name)?.as_str().map(str::to_owned)
    }

    /// Whether it says that the same request may be sent again with the same key.
    pub(super) fn is_retryable(&self) -> bool {
        let body: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        body.is_some_and(|body| body["retryable"] == true)
    }

    /// The problem's code.
    pub(super) fn code(&self) -> Option<String> {
        self.member("code")
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("invalid answer: {0}")]
    Senseless(String),
}

#[derive(Clone, Copy)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
}

/// The header that names the tenant: see the gateway's configuration in `part/gateway.rs`.
const ACCOUNT: &str = "x-account-id";

/// Longer than any answer takes; a demo that hangs says nothing.
const PATIENCE: Duration = Duration::from_secs(30);

impl Client {
    /// Sends a request and waits for its answer.
    pub(super) async fn send(self, request: &Request) -> Result<Answer, ClientError> {
        let peer = Peer::at(self.address, PATIENCE)?;
        let mut message = peer.request(request.method.clone(), &request.path);
        if let Some(account) = request.account {
            message = message.header(ACCOUNT, account);
        }
        if let Some(key) = request.key {
            message = message.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(mode) = request.mode {
            message = message.header(PROVIDER_MODE, mode);
        }
        if !request.body.is_empty() {
            message = message.header(CONTENT_TYPE, "application/json");
        }
        let (head, body) = peer.send(message, request.body.clone()).await?.into_parts();
        Ok(Answer::new(head.status, &head.headers, body))
    }

    /// Sends a request without waiting. Whoever drops what comes back hangs up.
    pub(super) fn begin(self, request: Request) -> Begun {
        Begun(tokio::spawn(async move { self.send(&request).await }))
    }
}

/// A request under way.
pub(super) struct Begun(JoinHandle<Result<Answer, ClientError>>);

impl Begun {
    pub(super) async fn answer(mut self) -> Result<Answer, ClientError> {
        let answer = (&mut self.0).await;
        answer.map_err(|error| ClientError::Senseless(error.to_string()))?
    }

    /// Closes the connection, answered or not, and waits until it is closed.
    pub(super) async fn hang_up(mut self) {
        self.0.abort();
        let _aborted = (&mut self.0).await;
        // The connection's own task ends with ours; this is when it does.
        tokio::task::yield_now().await;
    }

    pub(super) fn is_answered(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.abort();
    }
}
