//! Asking the server for as many messages as there is room for.

use async_nats::connection::State;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::BatchConfig;
use async_nats::jetstream::{Context, Message};
use async_nats::{StatusCode, Subject, Subscriber};
use std::time::Duration;
use tokio::time::Instant;
use tokio_stream::StreamExt as _;

/// How long the server remembers that it was asked. A question that was lost (the server was killed) is asked again after that.
const EXPIRES: Duration = Duration::from_secs(3);

/// How much later than the server we take a question for over.
const GRACE: Duration = Duration::from_millis(500);

/// How long to leave the server alone after it said that it cannot now.
const PAUSE: Duration = Duration::from_millis(250);

/// The messages that come, and how many were asked for.
pub(super) struct Pulling<'c> {
    context: &'c Context,
    consumer: &'c PullConsumer,
    /// How many may be here.
    room: usize,
    inbox: Subject,
    messages: Subscriber,
    /// How many of those that were asked for have not come.
    expected: usize,
    /// Until when they are expected, or when to ask again.
    until: Instant,
}

impl<'c> Pulling<'c> {
    pub(super) async fn new(
        context: &'c Context,
        consumer: &'c PullConsumer,
        room: usize,
    ) -> Result<Self, String> {
        let client = context.client();
        let inbox = Subject::from(client.new_inbox());
        let messages = client.subscribe(inbox.clone()).await.map_err(|error| error.to_string())?;
        let room = room.max(1);
        Ok(Self { context, consumer, room, inbox, messages, expected: 0, until: Instant::now() })
    }

    /// Asks for more, if none are expected and there is room for some: half of it at least, or a question would be asked for every
    /// message.
    pub(super) async fn ask(&mut self, held: usize) -> Result<(), String> {
        let free = self.room.saturating_sub(held);
        if self.expected > 0 || Instant::now() < self.until || (free * 2 < self.room && held > 0) {
            return Ok(());
        }
        if self.context.client().connection_state() != State::Connected {
            // The client would keep the question until it is old.
            self.over(PAUSE);
            return Ok(());
        }
        let batch = BatchConfig { batch: free, expires: Some(EXPIRES), ..BatchConfig::default() };
        let asked = self.consumer.request_batch(batch, self.inbox.clone()).await;
        asked.map_err(|error| error.to_string())?;
        self.expected = free;
        self.until = Instant::now() + EXPIRES + GRACE;
        Ok(())
    }

    /// The next message; `None`: it may be time to ask again. Safe to be dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, String> {
        let overdue = tokio::time::sleep_until(self.until);
        let waiting = self.expected > 0 || Instant::now() < self.until;
        let message = tokio::select! {
            message = self.messages.next() => message.ok_or("the subscription has ended")?,
            () = overdue, if waiting => {
                self.expected = 0;
                return Ok(None);
            }
        };
        match message.status {
            None | Some(StatusCode::OK) => {
                self.expected = self.expected.saturating_sub(1);
                if self.expected == 0 {
                    self.until = Instant::now();
                }
                Ok(Some(Message { message, context: self.context.clone() }))
            }
            // The question is over: not as many messages were there.
            Some(StatusCode::TIMEOUT | StatusCode::NOT_FOUND) => {
                self.over(Duration::ZERO);
                Ok(None)
            }
            Some(StatusCode::NO_RESPONDERS) => Err("no such consumer".into()),
            status => {
                let said = message.description.unwrap_or_default();
                if said.contains("Consumer Deleted") {
                    return Err("the consumer was deleted".into());
                }
                tracing::debug!(?status, said, "the server ended a request for messages");
                self.over(PAUSE);
                Ok(None)
            }
        }
    }

    fn over(&mut self, pause: Duration) {
        self.expected = 0;
        self.until = Instant::now() + pause;
    }
}
