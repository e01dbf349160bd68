//! `[outbox]`: where events are published to.

use super::nearest::nearest;
use super::section::{Given, Section, TextForm};
use super::tls;
use crate::secret::Secret;
use crate::setting::InvalidValue;
use crate::tls::ClientTlsFiles;
use semel_events::outbox::PublisherOptions;
use semel_events::sink::{InvalidBroker, NatsSink, RabbitMqSink};
use semel_http::webhook::WebhookSecret;
use semel_http::{Endpoint, InvalidEndpoint};
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

/// The receiver of events. Shown without anything that is secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinkConfig {
    /// By HTTP, signed as Standard Webhooks has it.
    Webhook {
        /// The address.
        url: String,
        /// What signs.
        secret: Secret,
        /// Whom to trust there, and which certificate to show, for `https`.
        tls: ClientTlsFiles,
    },
    /// A stream of NATS JetStream.
    Nats {
        /// The server, or several with commas between them, passwords and all.
        url: String,
        /// What subjects begin with, before the event's kind.
        subject: String,
        /// The one stream that may take the events; none: whichever has the subject.
        stream: Option<String>,
    },
    /// An exchange of RabbitMQ.
    RabbitMq {
        /// The broker, password and all.
        url: String,
        /// The exchange, which is made if it is not there.
        exchange: String,
    },
}

impl fmt::Display for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook { url, .. } => f.write_str(&shown(url)),
            Self::Nats { url, subject, stream } => {
                let servers: Vec<_> = url.split(',').map(|server| shown(server.trim())).collect();
                write!(f, "{}, under {subject}.KIND", servers.join(", "))?;
                stream.as_ref().map_or(Ok(()), |stream| write!(f, " in the stream {stream}"))
            }
            Self::RabbitMq { url, exchange } => write!(f, "{}, to the exchange {exchange}", shown(url)),
        }
    }
}

/// Without who asks, and without a query: of NATS, the user may be a token, and a query may hold secrets.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // First of all: a password may have a question mark in it.
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let place = place.split_once('?').map_or(place, |(place, _)| place);
    format!("{scheme}://{place}")
}

impl fmt::Debug for SinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SinkConfig({self})")
    }
}

const EXAMPLE: &str = "https://partner.example/events";
const SECRET_EXAMPLE: &str = "env:SEMEL_OUTBOX_SECRET";
const NAME_EXAMPLE: &str = "payments";

/// What sort of receiver an address is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    Webhook,
    Nats,
    RabbitMq,
}

impl Receiver {
    fn name(self) -> &'static str {
        match self {
            Self::Webhook => "a webhook",
            Self::Nats => "NATS",
            Self::RabbitMq => "RabbitMQ",
        }
    }

    /// The setting that it cannot do without, and an example.
    fn needs(self) -> (&'static str, &'static str) {
        match self {
            Self::Webhook => ("secret", SECRET_EXAMPLE),
            Self::Nats => ("subject", NAME_EXAMPLE),
            Self::RabbitMq => ("exchange", NAME_EXAMPLE),
        }
    }
}

pub(super) fn read(mut section: Section<'_, '_>, has_outbox: bool) -> Option<OutboxConfig> {
    let default = PublisherOptions::default();
    section.hide_credentials("sink");
    let sink = section.parsed("sink", TextForm { what: "an address", example: EXAMPLE }, address);
    let own = Own::read(&mut section);
    let attempts = section.number("attempts", 1..=1000);
    let longest = Duration::from_secs(60 * 60);
    let retry_every = section.duration("retry_every", "5s", Duration::from_millis(10)..=longest);
    if section.is_there() && !section.has("sink") {
        section.missing("sink", EXAMPLE);
    }
    own.check(&section, sink.as_ref().map(|sink| sink.value.0));
    if let Some(Given { at, .. }) = sink.as_ref().filter(|_| !has_outbox) {
        let cure = "use another `store`, \"sqlite:semel.db\" or \"postgres://…\", or remove [outbox]";
        section.wrong(at, "a store in memory, or in DynamoDB, has no outbox", cure);
    }
    let is_https = sink.as_ref().is_none_or(|given| given.value.1.starts_with("https://"));
    let tls = tls::read_client(section.section("tls", "[outbox.tls]"), "sink", is_https);
    section.end();
    let (receiver, url) = sink?.value;
    Some(OutboxConfig {
        sink: own.sink(receiver, url, tls)?,
        attempts: attempts.and_then(|given| u32::try_from(given.value).ok()).unwrap_or(default.attempts),
        retry_every: retry_every.map_or(default.retry_every, |given| given.value),
    })
}

/// The settings that belong to one sort of receiver each.
struct Own {
    secret: Option<Given<Secret>>,
    subject: Option<Given<String>>,
    stream: Option<Given<String>>,
    exchange: Option<Given<String>>,
}

impl Own {
    fn read(section: &mut Section<'_, '_>) -> Self {
        let kind = |what| TextForm { what, example: NAME_EXAMPLE };
        Self {
            secret: section.secret("secret"),
            subject: section.parsed("subject", kind("the beginning of subjects"), subject),
            stream: section.parsed("stream", kind("the name of a stream"), stream),
            exchange: section.parsed("exchange", kind("the name of an exchange"), exchange),
        }
    }

    /// Says what the receiver lacks, and what is not for it.
    fn check(&self, section: &Section<'_, '_>, receiver: Option<Receiver>) {
        if let Some(Given { value, at }) = &self.secret
            && receiver.is_none_or(|receiver| receiver == Receiver::Webhook)
            && !section.is_made_up(at)
            && let Err(error) = WebhookSecret::parse(value.reveal())
        {
            section.wrong(at, error.to_string(), "give the receiver the same one");
        }
        // Whoever has written no sink yet, and nothing that is for a broker, is shown the whole of a webhook.
        let begun = ["sink", "subject", "stream", "exchange"].iter().any(|name| section.has(name));
        let receiver = receiver.or_else(|| (section.is_there() && !begun).then_some(Receiver::Webhook));
        let Some(receiver) = receiver else { return };
        let (needed, example) = receiver.needs();
        if !section.has(needed) {
            section.missing(needed, example);
        }
        let place = |given: &Option<Given<String>>| given.as_ref().map(|given| given.at.clone());
        for (name, whose, at) in [
            ("secret", Receiver::Webhook, self.secret.as_ref().map(|given| given.at.clone())),
            ("subject", Receiver::Nats, place(&self.subject)),
            ("stream", Receiver::Nats, place(&self.stream)),
            ("exchange", Receiver::RabbitMq, place(&self.exchange)),
        ] {
            if let Some(at) = at.filter(|_| whose != receiver) {
                let problem =
                    format!("`{name}` is for {}, and this `sink` is {}", whose.name(), receiver.name());
                let cure = match (name, receiver) {
                    ("secret", _) => "remove it: a broker's URL holds user name and password",
                    _ => "remove it",
                };
                section.wrong(&at, problem, cure);
            }
        }
    }

    fn sink(self, receiver: Receiver, url: String, tls: ClientTlsFiles) -> Option<SinkConfig> {
        Some(match receiver {
            Receiver::Webhook => SinkConfig::Webhook { url, secret: self.secret?.value, tls },
            Receiver::Nats => {
                let stream = self.stream.map(|given| given.value);
                SinkConfig::Nats { url, subject: self.subject?.value, stream }
            }
            Receiver::RabbitMq => SinkConfig::RabbitMq { url, exchange: self.exchange?.value },
        })
    }
}

/// The address of a receiver that this build can publish to.
fn address(text: &str) -> Result<(Receiver, String), InvalidValue> {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    let right = |receiver| (receiver, text.to_owned());
    let broker = |error: InvalidBroker, example| {
        InvalidValue::new(error.to_string(), format!("write an address such as \"{example}\""))
    };
    let http = format!("write an address such as \"{EXAMPLE}\"");
    match scheme {
        "nats" if text.split(',').all(|server| server.trim().starts_with("nats://")) => {
            let checked = NatsSink::check(text);
            checked.map(|()| right(Receiver::Nats)).map_err(|error| broker(error, "nats://127.0.0.1:4222"))
        }
        "nats" => Err(broker(InvalidBroker::Nats, "nats://10.0.0.1:4222,nats://10.0.0.2:4222")),
        "amqp" => {
            let checked = RabbitMqSink::check(text);
            checked
                .map(|()| right(Receiver::RabbitMq))
                .map_err(|error| broker(error, "amqp://127.0.0.1:5672/%2f"))
        }
        "tls" | "amqps" => Err(InvalidValue::new(
            "the gateway connects to brokers without TLS: use a private network or a local TLS proxy",
            "write nats://… or amqp://…, or let the service publish by itself, with a client that supports TLS",
        )),
        "" | "http" | "https" => match Endpoint::parse(text) {
            Ok(_) => Ok(right(Receiver::Webhook)),
            Err(InvalidEndpoint::NotAUrl) => {
                Err(InvalidValue::new("the receiver of events is not a URL", http))
            }
            Err(error) => Err(InvalidValue::new(error.to_string(), http)),
        },
        other => {
            let cure = match nearest(other, ["http", "https", "nats", "amqp"]) {
                Some(meant) => format!("did you mean \"{meant}://…\"?"),
                None => "write an address that begins with https://, http://, nats:// or amqp://".to_owned(),
            };
            Err(InvalidValue::new("the scheme is not supported", cure))
        }
    }
}

fn subject(text: &str) -> Result<String, InvalidValue> {
    let cure = format!("write something like \"{NAME_EXAMPLE}\": events go to {NAME_EXAMPLE}.KIND then");
    let checked = NatsSink::check_prefix(text);
    checked.map(|()| text.to_owned()).map_err(|error| InvalidValue::new(error.to_string(), cure))
}

fn stream(text: &str) -> Result<String, InvalidValue> {
    let wrong = |letter: char| letter.is_whitespace() || letter.is_control() || ".*>/\\".contains(letter);
    if text.is_empty() || text.contains(wrong) {
        let problem = "the name of a stream has no spaces, dots, slashes, * or >";
        return Err(InvalidValue::new(problem, "write the name that the stream was created with"));
    }
    Ok(text.to_owned())
}

fn exchange(text: &str) -> Result<String, InvalidValue> {
    if (1..=255).contains(&text.len()) && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    let problem = "the name of an exchange has 1 to 255 characters";
    Err(InvalidValue::new(problem, format!("write something like \"{NAME_EXAMPLE}\"")))
}
