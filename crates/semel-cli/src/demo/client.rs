//! A client of the payment service.

use crate::exchange::{ExchangeError, exchange};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::Full;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

/// One request, as it is shown and as it is sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) account: &'static str,
    pub(super) key: Option<&'static str>,
    pub(super) body: String,
    /// Where the service is to hold its handler.
    pub(super) hold: Option<&'static str>,
}

impl Request {
    /// Asks for a payment.
    pub(super) fn pay(
        account: &'static str,
        key: Option<&'static str>,
        amount: &str,
        reference: &str,
    ) -> Self {
        let body = format!(r#"{{"amount":"{amount}","currency":"EUR","merchant_reference":"{reference}"}}"#);
        Self { method: Method::POST, path: "/payments".into(), account, key, body, hold: None }
    }

    /// Anything else.
    pub(super) fn plain(method: Method, path: String, account: &'static str) -> Self {
        Self { method, path, account, key: None, body: String::new(), hold: None }
    }

    pub(super) fn held_at(mut self, hold: &'static str) -> Self {
        self.hold = Some(hold);
        self
    }
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) replayed: bool,
    pub(super) retry_after: Option<String>,
    pub(super) location: Option<String>,
    pub(super) body: Bytes,
}

impl Answer {
    fn new(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            status,
            replayed: header("idempotent-replayed").as_deref() == Some("true"),
            retry_after: header("retry-after"),
            location: header("location"),
            body,
        }
    }

    /// A string member of the body.
    pub(super) fn member(&self, name: &str) -> Option<String> {
        let body: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        body.get(name)?.as_str().map(str::to_owned)
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
    #[error("the request could not be made: {0}")]
    Request(#[from] http::Error),
    #[error("the answer makes no sense: {0}")]
    Senseless(String),
}

#[derive(Clone, Copy)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
}

/// Longer than any answer takes; a demo that hangs says nothing.
const PATIENCE: Duration = Duration::from_secs(20);

impl Client {
    /// Sends a request and waits for its answer.
    pub(super) async fn send(self, request: &Request) -> Result<Answer, ClientError> {
        let mut message = http::Request::builder()
            .method(&request.method)
            .uri(&request.path)
            .header("host", self.address.to_string())
            .header("x-account-id", request.account);
        if let Some(key) = request.key {
            message = message.header("idempotency-key", key);
        }
        if let Some(hold) = request.hold {
            message = message.header(payments::HOLD, hold);
        }
        if !request.body.is_empty() {
            message = message.header("content-type", "application/json");
        }
        let message = message.body(Full::new(Bytes::from(request.body.clone())))?;
        let (head, body) = exchange(self.address, message, PATIENCE).await?.into_parts();
        Ok(Answer::new(head.status, &head.headers, body))
    }

    /// Sends a request without waiting. Whoever drops what comes back hangs up.
    pub(super) fn begin(self, request: Request) -> Begun {
        Begun(tokio::spawn(async move { self.send(&request).await }))
    }

    /// How many payments the accounts have, by the service's own account.
    pub(super) async fn payments(self, accounts: &[&'static str]) -> Result<u64, ClientError> {
        let mut sum = 0;
        for account in accounts {
            let answer = self.send(&Request::plain(Method::GET, "/payments".into(), account)).await?;
            let list: Option<serde_json::Value> = serde_json::from_slice(&answer.body).ok();
            let count = list.and_then(|list| list.get("count")?.as_u64());
            sum += count.ok_or_else(|| ClientError::Senseless(format!("{answer:?}")))?;
        }
        Ok(sum)
    }

    /// Waits until a handler is held at `hold`.
    pub(super) async fn until_held(self, hold: &str) -> Result<(), ClientError> {
        self.at_hold(Method::GET, hold).await
    }

    /// Lets go whoever is held at `hold`, and whoever comes later.
    pub(super) async fn let_go(self, hold: &str) -> Result<(), ClientError> {
        self.at_hold(Method::DELETE, hold).await
    }

    async fn at_hold(self, method: Method, hold: &str) -> Result<(), ClientError> {
        let answer = self.send(&Request::plain(method, format!("/demo/holds/{hold}"), "nobody")).await?;
        match answer.status {
            StatusCode::NO_CONTENT => Ok(()),
            _ => Err(ClientError::Senseless(format!("{answer:?}"))),
        }
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
