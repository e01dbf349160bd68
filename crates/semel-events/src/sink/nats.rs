//! Events published to a JetStream stream.

use super::broker::{InvalidBroker, Trouble};
use super::{Sink, Undelivered, wire};
use crate::message::Event;
use async_nats::connection::State;
use async_nats::header::HeaderValue;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{self, Context, ErrorCode, message::PublishMessage};
use async_nats::{ConnectOptions, Event as Happened, ServerAddr};
use std::error::Error as _;
use std::str::FromStr;

/// Publishes each event under the subject `PREFIX.KIND`, as in `payments.PaymentCreated`, with the event's id as `Nats-Msg-Id`: within
/// the stream's duplicate window the server drops repetitions by itself. An event is delivered once the stream has confirmed that it
/// keeps it.
///
/// Give the stream file storage; a server with `sync_interval: always` confirms nothing that a crash of its machine could undo.
///
/// ```no_run
/// use async_nats::jetstream;
/// use semel_events::sink::NatsSink;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = async_nats::connect("nats://127.0.0.1:4222").await?;
/// let sink = NatsSink::new(jetstream::new(client), "payments");
/// # drop(sink);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct NatsSink {
    context: Context,
    prefix: String,
    stream: Option<String>,
    trouble: Trouble,
}

impl NatsSink {
    /// Publishes under subjects that begin with `prefix`.
    pub fn new(context: Context, prefix: impl Into<String>) -> Self {
        Self { context, prefix: prefix.into(), stream: None, trouble: Trouble::default() }
    }

    /// Publishes to the server at `nats://user:password@host:4222`, or to a cluster of several, with commas between them.
    ///
    /// The connection is made in the background once a server is reachable, and again whenever it is lost. Events cannot be delivered
    /// meanwhile.
    ///
    /// # Errors
    /// There can be no server at this address, or no subject begins like this.
    pub async fn connect(address: &str, prefix: impl Into<String>) -> Result<Self, InvalidBroker> {
        let (servers, prefix) = (servers(address)?, prefix.into());
        Self::check_prefix(&prefix)?;
        let trouble = Trouble::default();
        let told = trouble.clone();
        let options = ConnectOptions::new().name("semel outbox").retry_on_initial_connect();
        let options = options.event_callback(move |happened| {
            match happened {
                Happened::Connected => told.over(),
                Happened::ServerError(error) => told.is(error.to_string()),
                Happened::ClientError(error) => told.is(error.to_string()),
                _ => {}
            }
            std::future::ready(())
        });
        // It does not wait for the server, and so there is nothing else that could go wrong.
        let client = options.connect(servers).await.map_err(|_| InvalidBroker::Nats)?;
        Ok(Self { trouble, ..Self::new(jetstream::new(client), prefix) })
    }

    /// Whether there can be a server at this address, or servers.
    ///
    /// # Errors
    /// There can be none.
    pub fn check(address: &str) -> Result<(), InvalidBroker> {
        servers(address).map(drop)
    }

    /// Whether subjects can begin like this.
    ///
    /// # Errors
    /// They cannot.
    pub fn check_prefix(prefix: &str) -> Result<(), InvalidBroker> {
        // What begins with a dollar sign is the server's own.
        let fits = is_subject(prefix) && !prefix.starts_with('$');
        if fits { Ok(()) } else { Err(InvalidBroker::Subject) }
    }

    /// Has the server refuse what another stream than this one would take.
    #[must_use]
    pub fn stream(mut self, name: impl Into<String>) -> Self {
        self.stream = Some(name.into());
        self
    }

    fn subject(&self, kind: &str) -> Result<String, Undelivered> {
        if is_subject(kind) {
            return Ok(format!("{}.{kind}", self.prefix));
        }
        Err(Undelivered::Refused(format!("{kind:?} cannot be part of a NATS subject")))
    }
}

/// Whether the text is words with dots between them, and no pattern.
fn is_subject(text: &str) -> bool {
    let fits = |word: &str| {
        !word.is_empty()
            && !word.contains(|letter: char| {
                letter.is_whitespace() || letter.is_control() || "*>".contains(letter)
            })
    };
    text.split('.').all(fits)
}

fn servers(address: &str) -> Result<Vec<ServerAddr>, InvalidBroker> {
    let server = |text: &str| {
        let server: ServerAddr = text.trim().parse().map_err(|_| InvalidBroker::Nats)?;
        if server.host().is_empty() { Err(InvalidBroker::Nats) } else { Ok(server) }
    };
    address.split(',').map(server).collect()
}

impl Sink for NatsSink {
    async fn publish(&self, event: &Event) -> Result<(), Undelivered> {
        let subject = self.subject(&event.kind)?;
        let header = |name: &str, text: &str| {
            HeaderValue::from_str(text)
                .map_err(|_| Undelivered::Refused(format!("{name} has a line break, and cannot be a header")))
        };
        let mut message = PublishMessage::build()
            .message_id(event.id.to_string())
            .header(wire::AGGREGATE, header(wire::AGGREGATE, &event.aggregate)?)
            .header(wire::KIND, header(wire::KIND, &event.kind)?)
            .header(wire::CONTENT_TYPE, header(wire::CONTENT_TYPE, &event.content_type)?)
            .payload(event.payload.clone());
        if let Some(stream) = &self.stream {
            message = message.expected_stream(stream);
        }
        // The client would keep it until it is connected again, and we would wait for a confirmation meanwhile.
        if self.context.client().connection_state() != State::Connected {
            return Err(Undelivered::Unreachable(format!("not connected to NATS{}", self.trouble)));
        }
        let failed = |error| undelivered(&subject, &error);
        let sent = self.context.send_publish(subject.clone(), message).await.map_err(failed)?;
        sent.await.map(drop).map_err(failed)
    }
}

/// Whether it is the event that the server does not want, or the server that cannot.
fn undelivered(subject: &str, error: &PublishError) -> Undelivered {
    let refusal = error.source().and_then(|source| source.downcast_ref::<jetstream::Error>());
    match (error.kind(), refusal.map(jetstream::Error::error_code)) {
        (PublishErrorKind::MaxPayloadExceeded, _)
        | (_, Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_HEADER_EXCEEDS_MAXIMUM)) => {
            Undelivered::Refused(format!("event too large: {error}"))
        }
        (PublishErrorKind::StreamNotFound, _) => Undelivered::Unreachable(format!(
            "no stream has the subject {subject}: create a stream, or add the subject to one"
        )),
        _ => Undelivered::Unreachable(format!("{subject}: {error}")),
    }
}
