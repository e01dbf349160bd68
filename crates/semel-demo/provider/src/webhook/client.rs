//! One try to deliver one message.

use super::message::Message;
use crate::ledger;
use crate::settings::Webhook;
use axum::http::{Request, header};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Whoever listens has this long to take a message.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends a message; it was taken if the answer is 2xx.
pub(super) async fn post(webhook: &Webhook, message: Message) -> Result<(), BoxError> {
    timeout(PATIENCE, send(webhook, message)).await?
}

async fn send(webhook: &Webhook, message: Message) -> Result<(), BoxError> {
    let Message { id, body } = message;
    let host = webhook.url.host().ok_or("the URL has no host")?;
    let address = (host.trim_matches(['[', ']']), webhook.url.port_u16().unwrap_or(80));
    // The time of this try, and not of the effect: whoever listens refuses what is old, so that nothing can be played to it again.
    let timestamp = ledger::now() / 1000;
    let signature = webhook.secret.sign(&id, timestamp, &body)?;
    let request = Request::post(webhook.url.path_and_query().map_or("/", |path| path.as_str()))
        .header(header::HOST, webhook.url.authority().map_or(host, |authority| authority.as_str()))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", signature)
        .body(Full::new(Bytes::from(body)))?;
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answered = async {
        let status = sender.send_request(request).await?.status();
        if status.is_success() { Ok(()) } else { Err(BoxError::from(format!("the answer was {status}"))) }
    };
    tokio::pin!(answered);
    tokio::select! {
        answered = &mut answered => answered,
        // The connection ends of itself after the answer, and then the answer is there.
        ended = connection => { ended?; answered.await }
    }
}
