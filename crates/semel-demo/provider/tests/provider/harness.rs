//! A provider on a real socket, and a client that sends what it is told to.

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use payment_provider::{Provider, Settings};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Longer than anything takes that works.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A provider in this process.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) ledger: PathBuf,
    directory: TempDir,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

pub(crate) async fn start(settings: Settings) -> Running {
    start_in(tempfile::tempdir().unwrap(), settings).await
}

async fn start_in(directory: TempDir, settings: Settings) -> Running {
    let ledger = directory.path().join("provider.ledger");
    let provider = Provider::open(&ledger, settings).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client { address: listener.local_addr().unwrap() };
    let (stop, stopped) = oneshot::channel();
    let serving = tokio::spawn(async {
        let stopped = async {
            let _told = stopped.await;
        };
        provider.serve(listener, stopped).await.unwrap();
    });
    Running { client, ledger, directory, stop, serving }
}

impl Running {
    /// Ends it in good order, and starts another one on the same ledger.
    pub(crate) async fn restart(self, settings: Settings) -> Self {
        let Self { directory, stop, serving, .. } = self;
        stop.send(()).unwrap();
        serving.await.unwrap();
        start_in(directory, settings).await
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(crate) address: SocketAddr,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn replayed(&self) -> bool {
        self.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
    }

    pub(crate) fn code(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap_or_default().to_owned())
    }
}

pub(crate) fn terms(amount: &str) -> Value {
    json!({ "amount": amount, "currency": "EUR", "reference": "invoice-1" })
}

impl Client {
    /// Sends a request; an error if no answer came.
    pub(crate) async fn try_send(
        self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "provider");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(body.into()))?).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        connection.abort();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(crate) async fn get(self, path: &str) -> Answer {
        self.try_send(Method::GET, path, &[], Bytes::new()).await.unwrap()
    }

    pub(crate) async fn delete(self, path: &str) -> Answer {
        self.try_send(Method::DELETE, path, &[], Bytes::new()).await.unwrap()
    }

    pub(crate) async fn try_post(
        self,
        path: &str,
        identity: &str,
        more: &[(&str, &str)],
        body: &Value,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut headers = vec![("idempotency-key", identity), ("content-type", "application/json")];
        headers.extend(more);
        self.try_send(Method::POST, path, &headers, body.to_string()).await
    }

    pub(crate) async fn charge(self, identity: &str, amount: &str) -> Answer {
        self.charge_with(identity, amount, &[]).await
    }

    pub(crate) async fn charge_with(self, identity: &str, amount: &str, more: &[(&str, &str)]) -> Answer {
        self.try_post("/charges", identity, more, &terms(amount)).await.unwrap()
    }

    pub(crate) async fn ask(self, identity: &str, attempt: u32) -> Answer {
        self.get(&format!("/charges/by-identity/{identity}?attempt={attempt}")).await
    }

    /// How many effects this identity has had.
    pub(crate) async fn effects(self, identity: &str) -> u64 {
        self.get(&format!("/ledger/by-identity/{identity}")).await.json()["effects"].as_u64().unwrap()
    }

    pub(crate) async fn summary(self) -> Value {
        self.get("/ledger/summary").await.json()
    }

    pub(crate) async fn set(self, change: &Value) -> Answer {
        let headers = [("content-type", "application/json")];
        self.try_send(Method::PUT, "/settings", &headers, change.to_string()).await.unwrap()
    }

    /// Returns once so many requests are kept waiting.
    pub(crate) async fn stalled(self, number: u64) {
        let waiting = self.get(&format!("/stalls?at_least={number}")).await.json();
        let all = waiting["before"].as_u64().unwrap() + waiting["after"].as_u64().unwrap();
        assert_eq!(all, number, "{waiting}");
    }

    /// Returns once the ledger has come to this.
    pub(crate) async fn until(self, reached: impl Fn(&Value) -> bool) -> Value {
        let reaching = async {
            loop {
                let summary = self.summary().await;
                if reached(&summary) {
                    return summary;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reaching).await.expect("the ledger comes to it")
    }
}
