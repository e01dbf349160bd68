//! Publishes by HTTP, signed as Standard Webhooks has it.

use super::{Sink, Undelivered};
use crate::message::Event;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use semel_http::webhook::WebhookSecret;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpStream;

/// What the receiver answers is read up to this length, so that the connection can be used again.
const LONGEST_ANSWER: usize = 64 * 1024;

/// So long is the rest of an answer waited for. Its head has said what becomes of the event: who holds the rest back loses the
/// connection and nothing else. Without an end the event would count as undelivered, though the receiver keeps it.
const LONGEST_REST: Duration = Duration::from_millis(250);

/// Connections that lie idle at most.
const MOST_IDLE: usize = 64;

const AGGREGATE: HeaderName = HeaderName::from_static("semel-aggregate");
const KIND: HeaderName = HeaderName::from_static("semel-kind");
const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Why nothing can be published at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWebhook {
    /// It is no address, or has a user or a password in it.
    #[error("this is no address to publish at: it looks like http://127.0.0.1:9100/events")]
    Address,
    /// It is not plain HTTP.
    #[error(
        "webhooks are sent over plain HTTP, to a receiver beside this process or through a local proxy that speaks TLS: write http://…"
    )]
    Scheme,
}

/// Publishes by `POST`: the payload is the body, `webhook-id` the event's id, and `webhook-timestamp` and `webhook-signature` prove
/// who sent it. `Semel-Aggregate` and `Semel-Kind` say what it is about.
///
/// - 2xx: the receiver keeps it.
/// - 4xx, but for 408 and 429: the receiver refuses this event.
/// - Anything else, or no answer: the receiver cannot be reached. Redirects are not followed.
///
/// Every delivery is signed anew. Connections are kept and used again.
pub struct Webhook {
    host: String,
    port: u16,
    authority: String,
    path: PathAndQuery,
    secret: WebhookSecret,
    idle: Mutex<Vec<Connection>>,
}

type Connection = SendRequest<Full<Bytes>>;

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("authority", &self.authority).finish_non_exhaustive()
    }
}

fn address(url: &str) -> Result<(Uri, Authority), InvalidWebhook> {
    let uri: Uri = url.parse().map_err(|_| InvalidWebhook::Address)?;
    let authority = uri.authority().cloned().ok_or(InvalidWebhook::Address)?;
    match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => {}
        Some(_) => return Err(InvalidWebhook::Scheme),
        None => return Err(InvalidWebhook::Address),
    }
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(InvalidWebhook::Address);
    }
    Ok((uri, authority))
}

impl Webhook {
    /// Publishes at this address, signed with this secret.
    ///
    /// # Errors
    /// Nothing can be published at the address.
    pub fn new(url: &str, secret: WebhookSecret) -> Result<Self, InvalidWebhook> {
        let (uri, authority) = address(url)?;
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).into(),
            port: authority.port_u16().unwrap_or(80),
            authority: authority.as_str().into(),
            path: uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")),
            secret,
            idle: Mutex::default(),
        })
    }

    /// Whether something can be published at this address.
    ///
    /// # Errors
    /// Why not.
    pub fn check(url: &str) -> Result<(), InvalidWebhook> {
        address(url).map(drop)
    }

    fn request(&self, event: &Event) -> Result<Request<Full<Bytes>>, Undelivered> {
        let (id, now) = (event.id.to_string(), SystemTime::now());
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string();
        let signature = self.secret.sign(&id, &seconds, &event.payload).unwrap_or_default();
        Request::post(self.path.as_str())
            .header(HOST, &self.authority)
            .header(CONTENT_TYPE, &event.content_type)
            .header(ID, id)
            .header(TIMESTAMP, seconds)
            .header(SIGNATURE, signature)
            .header(AGGREGATE, &event.aggregate)
            .header(KIND, &event.kind)
            .body(Full::new(event.payload.clone()))
            .map_err(|_| Undelivered::Refused("its names cannot be put into headers".into()))
    }

    async fn connect(&self) -> Result<Connection, Undelivered> {
        let unreachable = |error: String| Undelivered::Unreachable(format!("{}: {error}", self.authority));
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        // Small requests, one after the other: nothing is won by waiting for more.
        let _slower = stream.set_nodelay(true);
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(error.to_string()))?;
        // It ends with the sender.
        tokio::spawn(async move { drop(connection.await) });
        Ok(sender)
    }

    /// One that was kept, if it is alive as far as anybody knows.
    async fn kept(&self) -> Option<Connection> {
        loop {
            let mut connection = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if connection.ready().await.is_ok() {
                return Some(connection);
            }
        }
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE && !connection.is_closed() {
            idle.push(connection);
        }
    }

    async fn send(&self, mut connection: Connection, event: &Event) -> Result<StatusCode, Undelivered> {
        let broken = |error: hyper::Error| Undelivered::Unreachable(format!("{}: {error}", self.authority));
        let (head, body) = connection.send_request(self.request(event)?).await.map_err(broken)?.into_parts();
        // The head is the answer; the rest only says whether the connection can be used again.
        let rest = Limited::new(body, LONGEST_ANSWER).collect();
        if matches!(tokio::time::timeout(LONGEST_REST, rest).await, Ok(Ok(_))) {
            self.keep(connection);
        }
        Ok(head.status)
    }
}

impl Sink for Webhook {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        let status = match self.kept().await {
            // The receiver may have closed it while it was idle. If not, it gets the event twice, which it has to bear in any case.
            Some(connection) => match self.send(connection, event).await {
                Err(Undelivered::Unreachable(_)) => self.send(self.connect().await?, event).await?,
                answered => answered?,
            },
            None => self.send(self.connect().await?, event).await?,
        };
        let said = format!("{} answered {}", self.authority, status.as_u16());
        match status {
            status if status.is_success() => Ok(()),
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
                Err(Undelivered::Unreachable(said))
            }
            status if status.is_client_error() => Err(Undelivered::Refused(said)),
            _ => Err(Undelivered::Unreachable(said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_http_and_has_no_credentials() {
        let secret = || WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let of = |url| {
            Webhook::new(url, secret()).map(|webhook| (webhook.host, webhook.port, webhook.path.to_string()))
        };
        assert_eq!(of("http://[::1]:9100/events?x=1").unwrap(), ("::1".into(), 9100, "/events?x=1".into()));
        assert_eq!(of("http://partner").unwrap(), ("partner".into(), 80, "/".into()));
        assert_eq!(of("https://partner/events").unwrap_err(), InvalidWebhook::Scheme);
        for url in ["", "partner", "/events", "http://me:word@partner/", "http://"] {
            assert!(of(url).is_err(), "{url}");
        }
    }
}
