//! A payment service on a real socket, and a client that sends what it is told to.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "what goes wrong here is a failed test"
)]
#![allow(dead_code, reason = "each test binary uses a part of this")]

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use payments::{PaymentsOptions, PaymentsService};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpStream};

pub const ACCOUNT: &str = "acct_anna";

#[derive(Clone, Copy)]
pub struct Service {
    pub address: SocketAddr,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn replayed(&self) -> bool {
        self.headers.contains_key("idempotent-replayed")
    }

    /// What a retry gets again: status, kept headers and bytes.
    pub fn kept(&self) -> (u16, Vec<Option<&[u8]>>, &Bytes) {
        let kept = ["content-type", "location", "semel-operation-id"];
        (
            self.status,
            kept.iter().map(|name| self.headers.get(*name).map(|value| value.as_bytes())).collect(),
            &self.body,
        )
    }
}

pub async fn start(options: PaymentsOptions) -> Service {
    let directory = tempfile::tempdir().unwrap();
    let service =
        PaymentsService::open(directory.path().join("payments.db").to_str().unwrap(), options).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        service.serve(listener, std::future::pending()).await.unwrap();
        drop(directory);
    });
    Service { address }
}

pub fn payment(amount: &str, reference: &str) -> Value {
    json!({ "amount": amount, "currency": "EUR", "merchant_reference": reference })
}

/// A key that is long enough.
pub fn key(name: &str) -> String {
    format!("key-of-{name:-<20}")
}

impl Service {
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.try_send(method, path, headers, body).await.expect("an answer")
    }

    /// The same, if the connection holds until the answer is there.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Option<Answer> {
        let stream = TcpStream::connect(self.address).await.ok()?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path).header("host", "payments");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = sender.send_request(request.body(Full::new(body.into())).unwrap()).await.ok()?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        Some(Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub async fn pay_with(&self, account: &str, key: &str, more: &[(&str, &str)], body: &Value) -> Answer {
        let mut headers =
            vec![("idempotency-key", key), ("x-account-id", account), ("content-type", "application/json")];
        headers.extend(more);
        self.send(Method::POST, "/payments", &headers, body.to_string()).await
    }

    pub async fn pay(&self, key: &str, body: &Value) -> Answer {
        self.pay_with(ACCOUNT, key, &[], body).await
    }

    pub async fn get(&self, account: &str, path: &str) -> Answer {
        self.send(Method::GET, path, &[("x-account-id", account)], Bytes::new()).await
    }

    pub async fn count(&self, account: &str) -> u64 {
        self.get(account, "/payments").await.json()["count"].as_u64().unwrap()
    }
}
