//! A consumer of a JetStream stream.

mod pull;
mod receipt;

use self::pull::Pulling;
use super::handler::Handler;
use super::in_order::InOrder;
use super::options::ConsumerOptions;
use crate::inbox::Retention;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull::Config};
use async_nats::jetstream::stream::{self, RetentionPolicy};
use async_nats::jetstream::{Context, context::GetStreamErrorKind};
use semel::Environment;
use semel::background::spread;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long the server waits for an acknowledgement, or for a word that the work goes on, before it delivers again.
const ACK_WAIT: Duration = Duration::from_secs(30);

/// The longest pause between two attempts to begin.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Takes the messages of a JetStream stream, as a durable pull consumer. Several processes that run one of the same name share the
/// messages.
///
/// ```no_run
/// use async_nats::jetstream;
/// use semel_events::consumer::{Delivery, Failure, NatsConsumer};
///
/// # async fn run(stop: impl Future<Output = ()>) -> Result<(), Box<dyn std::error::Error>> {
/// let client = async_nats::connect("nats://127.0.0.1:4222").await?;
/// let consumer = NatsConsumer::new(jetstream::new(client), "PAYMENTS", "ledger");
/// consumer.run(async |delivery: Delivery| -> Result<(), Failure> { Ok(()) }, stop).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct NatsConsumer {
    context: Context,
    stream: String,
    durable: String,
    subjects: Vec<String>,
    options: ConsumerOptions,
    ack_wait: Duration,
    dead_letters: Option<String>,
    retention: Retention,
}

/// A stream or a consumer that does not suit. Nothing was consumed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misconfigured(String);

/// Why a consumer did not get to work.
enum NotBegun {
    Misconfigured(Misconfigured),
    NotNow(String),
}

/// Why a consumer came to an end of its work.
enum Ended {
    Stopped,
    Lost(String),
}

impl NatsConsumer {
    /// Takes what is in this stream under this durable name. The consumer is made if it is not there; one that is there is used as it
    /// is.
    pub fn new(context: Context, stream: impl Into<String>, durable: impl Into<String>) -> Self {
        Self {
            context,
            stream: stream.into(),
            durable: durable.into(),
            subjects: Vec::new(),
            options: ConsumerOptions::default(),
            ack_wait: ACK_WAIT,
            dead_letters: None,
            retention: Retention::default(),
        }
    }

    /// Takes messages of these subjects alone, when the consumer is made.
    #[must_use]
    pub fn subjects(mut self, subjects: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.subjects = subjects.into_iter().map(Into::into).collect();
        self
    }

    /// Works by these options.
    #[must_use]
    pub fn options(mut self, options: ConsumerOptions) -> Self {
        self.options = options;
        self
    }

    /// How long the server waits for a sign of life before it delivers a message again, when the consumer is made. Default 30 s.
    #[must_use]
    pub fn ack_wait(mut self, ack_wait: Duration) -> Self {
        self.ack_wait = ack_wait;
        self
    }

    /// Publishes what is set aside under this subject, which a stream has to take. Without one, what is set aside stays in its own stream
    /// (the log tells its number) and is not delivered any more; a stream that loses what is settled (a work queue) has to have one.
    #[must_use]
    pub fn dead_letters(mut self, subject: impl Into<String>) -> Self {
        self.dead_letters = Some(subject.into());
        self
    }

    /// How long the handler's inbox keeps its marks, so that it can be compared with what the stream keeps.
    #[must_use]
    pub fn marks_kept(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Works until `stop` is ready. A server that cannot be reached, or a stream that is not there yet, is waited for.
    ///
    /// It may be dropped at any moment, and so may the process die: what was not acknowledged is delivered again.
    ///
    /// # Errors
    /// [`Misconfigured`]: messages could be lost, or never be acknowledged. Nothing was consumed.
    pub async fn run(
        self,
        handler: impl Handler,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Misconfigured> {
        let (handler, mut stop) = (Arc::new(handler), pin!(stop));
        let mut pause = Duration::from_millis(100);
        loop {
            let begun = Instant::now();
            let ended = tokio::select! {
                consumer = self.begin() => match consumer {
                    Ok(consumer) => self.consume(&consumer, Arc::clone(&handler), stop.as_mut()).await,
                    Err(NotBegun::Misconfigured(error)) => return Err(error),
                    Err(NotBegun::NotNow(why)) => Ended::Lost(why),
                },
                () = stop.as_mut() => Ended::Stopped,
            };
            let Ended::Lost(why) = ended else { return Ok(()) };
            if begun.elapsed() > LONGEST_PAUSE {
                pause = Duration::from_millis(100);
            }
            tracing::warn!(
                stream = self.stream,
                consumer = self.durable,
                why,
                "consumer: broker unavailable, retrying"
            );
            tokio::select! {
                () = tokio::time::sleep(spread(pause, &Environment::default())) => {}
                () = stop.as_mut() => return Ok(()),
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Finds or makes the consumer, and checks what would lose messages.
    async fn begin(&self) -> Result<PullConsumer, NotBegun> {
        let stream = self.context.get_stream(&self.stream).await.map_err(|error| match error.kind() {
            GetStreamErrorKind::JetStream(refusal) if refusal.code() == 404 => {
                NotBegun::NotNow(format!("the stream {} does not exist: create it", self.stream))
            }
            GetStreamErrorKind::EmptyName | GetStreamErrorKind::InvalidStreamName => {
                NotBegun::Misconfigured(Misconfigured(format!("invalid stream name {:?}", self.stream)))
            }
            _ => NotBegun::NotNow(error.to_string()),
        })?;
        self.check_stream(&stream.cached_info().config)?;
        let config = Config {
            durable_name: Some(self.durable.clone()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.ack_wait,
            // The server would silently stop to deliver; what is given up is set aside here, and seen.
            max_deliver: -1,
            filter_subjects: self.subjects.clone(),
            ..Config::default()
        };
        let consumer = stream.get_or_create_consumer(&self.durable, config).await;
        let consumer: PullConsumer = consumer.map_err(|error| NotBegun::NotNow(error.to_string()))?;
        self.check_consumer(&consumer)?;
        Ok(consumer)
    }

    fn check_stream(&self, stream: &stream::Config) -> Result<(), NotBegun> {
        if stream.retention != RetentionPolicy::Limits && self.dead_letters.is_none() {
            return Err(NotBegun::Misconfigured(Misconfigured(format!(
                "the stream {} drops acknowledged messages: configure a subject for dead letters",
                self.stream
            ))));
        }
        if stream.max_age.is_zero() || stream.max_age > self.retention.messages {
            tracing::warn!(
                stream = self.stream,
                consumer = self.durable,
                max_age = ?stream.max_age,
                marks_kept = ?self.retention.messages,
                "the stream keeps messages for longer than the inbox keeps its marks: a message unacknowledged for so long \
                 would take effect twice. Give the stream a shorter max_age, or keep marks longer"
            );
        }
        Ok(())
    }

    fn check_consumer(&self, consumer: &PullConsumer) -> Result<(), NotBegun> {
        let config = &consumer.cached_info().config;
        let trouble = if config.ack_policy != AckPolicy::Explicit {
            "does not ask for an acknowledgement of each message (ack_policy explicit)"
        } else if config.max_deliver > 0 {
            "silently gives up on messages (max_deliver): set it to -1"
        } else {
            return Ok(());
        };
        Err(NotBegun::Misconfigured(Misconfigured(format!(
            "the consumer {} of the stream {} {trouble}",
            self.durable, self.stream
        ))))
    }

    async fn consume<H: Handler>(
        &self,
        consumer: &PullConsumer,
        handler: Arc<H>,
        mut stop: impl Future<Output = ()> + Unpin,
    ) -> Ended {
        let ack_wait = consumer.cached_info().config.ack_wait;
        let keep_every = (if ack_wait.is_zero() { ACK_WAIT } else { ack_wait }) / 3;
        let mut keeping = tokio::time::interval(keep_every);
        let mut lanes = InOrder::new(handler, self.options);
        let mut pulling =
            match Pulling::new(&self.context, consumer, usize::from(self.options.in_flight)).await {
                Ok(pulling) => pulling,
                Err(why) => return Ended::Lost(why),
            };
        let ended = loop {
            if let Err(why) = pulling.ask(lanes.held()).await {
                break Ended::Lost(why);
            }
            tokio::select! {
                message = pulling.next() => match message {
                    Ok(Some(message)) => lanes.accept(receipt::message(message, keep_every, self.dead_letters.as_deref())),
                    Ok(None) => {}
                    Err(why) => break Ended::Lost(why),
                },
                () = lanes.one_through() => {}
                _ = keeping.tick() => lanes.keep_waiting().await,
                () = &mut stop => break Ended::Stopped,
            }
        };
        drop(pulling);
        lanes.stop().await;
        // What was said last has to be said before the process may end.
        let _gone = tokio::time::timeout(Duration::from_secs(5), self.context.client().flush()).await;
        ended
    }
}
