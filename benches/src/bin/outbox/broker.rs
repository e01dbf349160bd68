//! A private NATS with one stream, and the bare publishing to it.

use crate::Failure;
use async_nats::jetstream::{self, Context, message::PublishMessage, stream};
use semel_events::message::Event;
use semel_events::sink::NatsSink;
use semel_testing::servers::Nats;
use std::collections::VecDeque;

const STREAM: &str = "payments";

/// So many messages wait for their confirmation at once, as with a publisher.
const IN_FLIGHT: usize = 1_024;

pub(crate) struct Broker {
    context: Context,
    // Ends with this value.
    _server: Nats,
}

impl Broker {
    pub(crate) async fn start(unsynced: bool) -> Result<Self, Failure> {
        let server = if unsynced { Nats::start_unsynced()? } else { Nats::start()? };
        let context = jetstream::new(async_nats::connect(server.url()).await?);
        let config = stream::Config {
            name: STREAM.to_owned(),
            subjects: vec![format!("{STREAM}.>")],
            ..stream::Config::default()
        };
        context.create_stream(config).await?;
        Ok(Self { context, _server: server })
    }

    /// For a publisher.
    pub(crate) fn sink(&self) -> NatsSink {
        NatsSink::new(self.context.clone(), STREAM)
    }

    /// Checks that the stream keeps exactly so many messages, and takes them out.
    pub(crate) async fn empty(&self, expected: usize) -> Result<(), Failure> {
        let mut stream = self.context.get_stream(STREAM).await?;
        let kept = stream.info().await?.state.messages;
        if usize::try_from(kept) != Ok(expected) {
            return Err(format!("the stream keeps {kept} messages of {expected}").into());
        }
        stream.purge().await?;
        Ok(())
    }

    /// Publishes the events with all that a sink tells of them, from one loop, and waits for every confirmation.
    pub(crate) async fn publish(&self, events: Vec<Event>) -> Result<(), Failure> {
        let mut unconfirmed = VecDeque::with_capacity(IN_FLIGHT);
        for event in events {
            if unconfirmed.len() == IN_FLIGHT
                && let Some(first) = unconfirmed.pop_front()
            {
                confirmed(first).await?;
            }
            let message = PublishMessage::build()
                .message_id(event.id.to_string())
                .header("Semel-Aggregate", event.aggregate.as_str())
                .header("Semel-Kind", event.kind.as_str())
                .header("Content-Type", event.content_type.as_str())
                .payload(event.payload);
            let subject = format!("{STREAM}.{}", event.kind);
            unconfirmed.push_back(self.context.send_publish(subject, message).await?);
        }
        for one in unconfirmed {
            confirmed(one).await?;
        }
        Ok(())
    }
}

async fn confirmed(sent: jetstream::context::PublishAckFuture) -> Result<(), Failure> {
    sent.await?;
    Ok(())
}
