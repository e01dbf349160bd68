//! Publishes by HTTP, signed as Standard Webhooks has it.

use super::wire::{AGGREGATE_FIELD, KIND_FIELD};
use super::{Sink, Undelivered};
use crate::message::Event;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use semel_http::tls::{ClientTlsFiles, TlsError};
use semel_http::webhook::{ID, SIGNATURE, TIMESTAMP, WebhookSecret};
use semel_http::{Client, Endpoint, InvalidEndpoint, Options, Resend};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer than any deadline of a publisher, which gives up first.
const DEADLINE: Duration = Duration::from_secs(60);

/// How many idle connections are kept.
const IDLE_CONNECTIONS: usize = 64;

/// Why nothing can be published at a URL. The URL is not repeated: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWebhook {
    /// It is not a URL that requests can be sent to.
    #[error(transparent)]
    Url(#[from] InvalidEndpoint),
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Publishes by `POST`: the payload is the body, `webhook-id` the event's id, and `webhook-timestamp` and `webhook-signature` prove
/// who sent it. `Semel-Aggregate` and `Semel-Kind` say what it is about.
///
/// - 2xx: the receiver keeps it.
/// - 4xx, but for 408 and 429: the receiver refuses this event.
/// - Anything else, or no answer: the receiver cannot be reached. Redirects are not followed.
///
/// Each delivery attempt gets its own signature. Connections are kept alive.
pub struct Webhook {
    endpoint: Endpoint,
    client: Client,
    secret: WebhookSecret,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("authority", &self.endpoint.authority()).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Publishes at this `http` or `https` URL, signed with this secret. For `https` it trusts the system's authorities, and has to be
    /// called within a runtime.
    ///
    /// # Errors
    /// Nothing can be published there.
    pub fn new(url: &str, secret: WebhookSecret) -> Result<Self, InvalidWebhook> {
        Self::with_tls(url, secret, ClientTlsFiles::default())
    }

    /// As [`new`](Self::new); for `https` it trusts the authorities of these files, and shows their certificate.
    ///
    /// # Errors
    /// Nothing can be published there, or the files cannot be used.
    pub fn with_tls(url: &str, secret: WebhookSecret, tls: ClientTlsFiles) -> Result<Self, InvalidWebhook> {
        let endpoint = Endpoint::parse(url)?;
        let options = Options {
            deadline: DEADLINE,
            idle_connections: IDLE_CONNECTIONS,
            // The receiver may have closed an idle connection. If not, it gets the event twice, which it has to bear in any case.
            resend: Resend::Once,
            ..Options::default()
        };
        let client = Client::new(&endpoint, tls, options)?;
        Ok(Self { endpoint, client, secret })
    }

    fn request(&self, event: &Event) -> Result<Request<Bytes>, Undelivered> {
        let (id, now) = (event.id.to_string(), SystemTime::now());
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()).to_string();
        let signature = self.secret.sign(&id, &seconds, &event.payload).unwrap_or_default();
        self.endpoint
            .post(self.endpoint.path())
            .header(CONTENT_TYPE, &event.content_type)
            .header(ID, id)
            .header(TIMESTAMP, seconds)
            .header(SIGNATURE, signature)
            .header(AGGREGATE_FIELD, &event.aggregate)
            .header(KIND_FIELD, &event.kind)
            .body(event.payload.clone())
            .map_err(|_| Undelivered::Refused("its attributes are not valid header values".into()))
    }
}

impl Sink for Webhook {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        // The head is the answer: a receiver that holds the rest back keeps the event all the same.
        let head = self.client.send_for_head(self.request(event)?).await;
        let status = head.map_err(|error| Undelivered::Unreachable(error.to_string()))?.status;
        let said = format!("{} answered {}", self.endpoint.authority(), status.as_u16());
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
    fn a_url_has_a_host_and_no_credentials() {
        let secret = || WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let of = |url| Webhook::new(url, secret()).map(|webhook| webhook.endpoint.to_string());
        assert_eq!(of("http://[::1]:9100/events?x=1").unwrap(), "http://[::1]:9100/events?x=1");
        assert_eq!(of("http://partner").unwrap(), "http://partner/");
        for url in ["", "partner", "/events", "ftp://partner/", "http://me:sesame@partner/", "http://"] {
            let error = of(url).unwrap_err();
            assert!(
                matches!(error, InvalidWebhook::Url(_)) && !error.to_string().contains("sesame"),
                "{url}"
            );
        }
    }
}
