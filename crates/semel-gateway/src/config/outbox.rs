//! `[outbox]`: where events are published to.

use super::error::Wrong;
use super::section::{Given, Kind, Section};
use crate::secret::Secret;
use semel_relay::WebhookSecret;
use semel_relay::outbox::PublisherOptions;
use semel_relay::sink::{InvalidWebhook, Webhook};
use std::fmt;
use std::time::Duration;

/// Where events of the outbox are published to, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutboxConfig {
    /// The receiver.
    pub sink: SinkConfig,
    /// How often the receiver may refuse an event before it is a dead letter. Default 12.
    pub attempts: u32,
    /// How long after its first refusal an event is tried again; then exponentially longer. Default 5 s.
    pub retry_every: Duration,
}

/// The receiver of events.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinkConfig {
    /// By HTTP, signed as Standard Webhooks has it.
    Webhook {
        /// The address.
        url: String,
        /// What signs.
        secret: Secret,
    },
}

impl fmt::Display for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // A query may hold what is nobody else's business.
            Self::Webhook { url, .. } => f.write_str(url.split_once('?').map_or(url, |(address, _)| address)),
        }
    }
}

impl fmt::Debug for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SinkConfig({self})")
    }
}

const EXAMPLE: &str = "http://127.0.0.1:9100/events";
const SECRET_EXAMPLE: &str = "env:SEMEL_OUTBOX_SECRET";

pub(super) fn read(mut section: Section<'_, '_>, durable: bool) -> Option<OutboxConfig> {
    let default = PublisherOptions::default();
    let there = section.is_there();
    section.hide_credentials("sink");
    let sink = section.parsed("sink", Kind { what: "an address", example: EXAMPLE }, address);
    let secret = section.secret("secret");
    let attempts = section.number("attempts", 1..=1000);
    let longest = Duration::from_secs(60 * 60);
    let retry_every = section.duration("retry_every", "5s", Duration::from_millis(10)..=longest);
    if there && !section.has("sink") {
        section.missing("sink", EXAMPLE);
    }
    if there && !section.has("secret") {
        section.missing("secret", SECRET_EXAMPLE);
    }
    if let Some(Given { at, .. }) = sink.as_ref().filter(|_| !durable) {
        let cure =
            "write a `store` that lasts, \"sqlite:semel.db\" or \"postgres://…\", or leave [outbox] out";
        section.wrong(at, "a store in memory has no outbox", cure);
    }
    if let Some(Given { value, at }) = &secret
        && let Err(error) = WebhookSecret::parse(value.reveal())
    {
        section.wrong(at, error.to_string(), "give the receiver the same one");
    }
    section.end();
    Some(OutboxConfig {
        sink: SinkConfig::Webhook { url: sink?.value, secret: secret?.value },
        attempts: attempts.and_then(|given| u32::try_from(given.value).ok()).unwrap_or(default.attempts),
        retry_every: retry_every.map_or(default.retry_every, |given| given.value),
    })
}

/// The address of a receiver that this build can publish to.
fn address(text: &str) -> Result<String, Wrong> {
    let cure = format!("write an address such as \"{EXAMPLE}\"");
    match text.split_once("://").map(|(scheme, _)| scheme) {
        Some(scheme @ ("nats" | "tls" | "amqp" | "amqps")) => Err(Wrong::new(
            format!("this version does not publish to `{scheme}`"),
            format!("{cure}, of a receiver that passes events on"),
        )),
        Some("https") => Err(Wrong::new(InvalidWebhook::Scheme.to_string(), cure)),
        _ => match Webhook::check(text) {
            Ok(()) => Ok(text.to_owned()),
            Err(error) => Err(Wrong::new(error.to_string(), cure)),
        },
    }
}
