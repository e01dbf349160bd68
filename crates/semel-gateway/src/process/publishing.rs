//! Publishes what the store's outbox holds, where the configuration says so.

use crate::config::{OutboxConfig, SinkConfig};
use crate::store::Outbox;
use semel_events::outbox::{Counts, Publisher, PublisherOptions};
use semel_events::sink::{InvalidBroker, InvalidWebhook, NatsSink, RabbitMqSink, Sink, Webhook};
use semel_http::webhook::{InvalidSecret, WebhookSecret};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// Why events cannot be published as the configuration says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutboxError {
    /// The URL cannot be published to, or the files for TLS cannot be used.
    #[error("outbox: invalid webhook receiver")]
    Webhook(#[from] InvalidWebhook),
    /// The broker's address is invalid.
    #[error("outbox: invalid broker URL")]
    Broker(#[from] InvalidBroker),
    /// The secret is invalid.
    #[error("outbox: invalid webhook secret")]
    Secret(#[from] InvalidSecret),
    /// The store keeps nothing.
    #[error("this store has no outbox: sqlite: and postgres:// stores have one")]
    NoOutbox,
}

/// A publisher that is ready to run, whatever its receiver is.
pub(crate) struct Publishing {
    run: Box<dyn FnOnce(Task) -> Task + Send>,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Publishing {
    /// What the configuration asks for. The receiver need not be reachable yet: events wait for it.
    ///
    /// It counts on where earlier ones of this process are.
    pub(crate) async fn new(
        config: &OutboxConfig,
        outbox: Option<&Outbox>,
        counts: &Arc<Counts>,
    ) -> Result<Self, OutboxError> {
        let outbox = outbox.ok_or(OutboxError::NoOutbox)?;
        let options = PublisherOptions {
            attempts: config.attempts,
            retry_every: config.retry_every,
            ..PublisherOptions::default()
        };
        match &config.sink {
            SinkConfig::Webhook { url, secret, tls } => {
                let secret = WebhookSecret::parse(secret.reveal())?;
                let webhook = Webhook::with_tls(url, secret, tls.clone())?;
                Ok(Self::by(outbox, webhook, options, counts))
            }
            SinkConfig::Nats { url, subject, stream } => {
                let nats = NatsSink::connect(url, subject).await?;
                let nats = stream.iter().fold(nats, NatsSink::stream);
                Ok(Self::by(outbox, nats, options, counts))
            }
            SinkConfig::RabbitMq { url, exchange } => {
                RabbitMqSink::check(url)?;
                Ok(Self::by(outbox, RabbitMqSink::new(url, exchange), options, counts))
            }
        }
    }

    fn by(outbox: &Outbox, sink: impl Sink, options: PublisherOptions, counts: &Arc<Counts>) -> Self {
        let publisher =
            Publisher::new(Arc::clone(&outbox.queue), sink, options).counting_on(Arc::clone(counts));
        Self { run: Box::new(move |stop| Box::pin(publisher.run(stop))) }
    }

    /// Publishes until `stop` is ready, and what is under way has ended.
    pub(crate) async fn run(self, stop: impl Future<Output = ()> + Send + 'static) {
        (self.run)(Box::pin(stop)).await;
    }
}
