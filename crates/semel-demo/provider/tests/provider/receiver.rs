//! Somebody who listens to webhooks, and checks their signatures with nothing of the provider's own.

use crate::harness::PATIENCE;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use payment_provider::{Secret, Webhook};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

const KEY: &[u8] = b"a secret of 32 bytes, no others.";

pub(crate) struct Receiver {
    address: SocketAddr,
    messages: mpsc::UnboundedReceiver<Message>,
    /// What it answers.
    answer: Arc<AtomicU16>,
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) body: Value,
}

#[derive(Clone)]
struct Shared {
    messages: mpsc::UnboundedSender<Message>,
    answer: Arc<AtomicU16>,
}

pub(crate) async fn listen() -> Receiver {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, messages) = mpsc::unbounded_channel();
    let answer = Arc::new(AtomicU16::new(204));
    let shared = Shared { messages: sender, answer: Arc::clone(&answer) };
    let router = Router::new().route("/hooks/provider", post(receive)).with_state(shared);
    tokio::spawn(async { axum::serve(listener, router).await });
    Receiver { address, messages, answer }
}

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: String) -> StatusCode {
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    assert_eq!(header("content-type"), "application/json");
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(since.abs_diff(timestamp.parse().unwrap()) < 60, "a signature is of now");
    let signature = STANDARD.encode(hmac(KEY, format!("{id}.{timestamp}.{body}").as_bytes()));
    assert_eq!(header("webhook-signature"), format!("v1,{signature}"));
    let body = serde_json::from_str(&body).unwrap();
    // Before the message is shown: whoever has seen it may change the answers to the next ones.
    let answer = shared.answer.load(Ordering::SeqCst);
    shared.messages.send(Message { id, body }).unwrap();
    StatusCode::from_u16(answer).unwrap()
}

/// HMAC-SHA-256 as RFC 2104 spells it, for keys of up to a block.
fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let padded = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

impl Receiver {
    /// The settings of a webhook to here.
    pub(crate) fn webhook(&self) -> Webhook {
        let secret = Secret::parse(&self.secret()).unwrap();
        let mut webhook = Webhook::new(&self.url(), secret).unwrap();
        webhook.first_retry = std::time::Duration::from_millis(5);
        webhook
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks/provider", self.address)
    }

    pub(crate) fn secret(&self) -> String {
        format!("whsec_{}", STANDARD.encode(KEY))
    }

    pub(crate) fn answers(&self, status: u16) {
        self.answer.store(status, Ordering::SeqCst);
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Message {
        timeout(PATIENCE, self.messages.recv()).await.expect("a message comes").unwrap()
    }

    /// There are no messages that nobody has looked at.
    pub(crate) fn assert_silent(&mut self) {
        assert!(self.messages.try_recv().is_err(), "a message that nobody expects");
    }
}
