//! What a message of JetStream is, and what can be said to the server about it.

use crate::consumer::delivery::Delivery;
use crate::consumer::in_order::{Receipt, ReceivedMessage};
use crate::inbox::MessageId;
use crate::sink::wire;
use async_nats::connection::State;
use async_nats::header::{HeaderMap, NATS_MESSAGE_ID};
use async_nats::jetstream::{AckKind, Message, message::PublishMessage};
use std::future::Future;
use std::time::Duration;

/// How long the server has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The server's word about one delivery.
pub(super) struct NatsReceipt {
    message: Message,
    keep_every: Duration,
    dead_letters: Option<String>,
}

/// The message as it arrives.
pub(super) fn message(
    message: Message,
    keep_every: Duration,
    dead_letters: Option<&str>,
) -> ReceivedMessage<NatsReceipt> {
    let deliveries = message.info().map_or(0, |info| u64::try_from(info.delivered).unwrap_or(0));
    let delivery = read(&message);
    let receipt = NatsReceipt { message, keep_every, dead_letters: dead_letters.map(Into::into) };
    ReceivedMessage { delivery, deliveries, receipt }
}

fn read(message: &Message) -> Result<Delivery, String> {
    let header = |name: &str| Some(message.headers.as_ref()?.get(name)?.as_str().to_owned());
    // A dead letter that was published again has a new one for the server, and is the same message all the same.
    let id = match header(wire::MESSAGE_ID).or_else(|| header("Nats-Msg-Id")) {
        Some(id) => id,
        None => message.reply.as_deref().and_then(place).ok_or("not a JetStream message")?,
    };
    Ok(Delivery {
        id: MessageId::new(id).map_err(|error| error.to_string())?,
        aggregate: header(wire::AGGREGATE).unwrap_or_else(|| message.subject.to_string()),
        kind: header(wire::KIND).unwrap_or_else(|| message.subject.to_string()),
        content_type: header(wire::CONTENT_TYPE).unwrap_or_else(|| wire::UNKNOWN_CONTENT.to_owned()),
        payload: message.payload.clone(),
    })
}

/// What tells a message apart that somebody else published without an id: its stream, its number there, and when it came, for a stream
/// that is deleted and created again counts from one again.
fn place(reply: &str) -> Option<String> {
    // $JS.ACK.STREAM.CONSUMER.DELIVERIES.NUMBER.(its number for the consumer).TIME.PENDING, in later servers with domain and account first.
    let tokens: Vec<&str> = reply.split('.').collect();
    let stream = if tokens.len() > 9 { 4 } else { 2 };
    let [name, number, time] = [stream, stream + 3, stream + 5].map(|place| tokens.get(place));
    Some(format!("{}:{}:{}", name?, number?, time?))
}

impl NatsReceipt {
    /// Whether the server was told. Without a connection nothing is sent: the client would buffer it, and in the end make us wait.
    async fn told(&self, word: impl Future<Output = Result<(), async_nats::Error>>) -> Result<(), String> {
        if self.message.context.client().connection_state() != State::Connected {
            return Err("not connected".into());
        }
        match tokio::time::timeout(PATIENCE, word).await {
            Ok(said) => said.map_err(|error| error.to_string()),
            Err(_) => Err("the server does not answer".into()),
        }
    }

    async fn say(&self, kind: AckKind) {
        if let Err(why) = self.told(self.message.ack_with(kind)).await {
            tracing::debug!(why, "could not acknowledge: the server delivers the message again");
        }
    }

    /// A copy for operators. Where the same one is set aside twice, the server drops the second.
    async fn publish_copy(&self, subject: &str, why: &str) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        for (name, values) in self.message.headers.iter().flat_map(HeaderMap::iter) {
            // What was for the server is about the message's own stream: which one it expects, say.
            if !name.to_string().to_ascii_lowercase().starts_with("nats-") {
                values.iter().for_each(|value| headers.append(name.clone(), value.clone()));
            }
        }
        if let Ok(delivery) = read(&self.message) {
            headers.insert(wire::MESSAGE_ID, delivery.id.as_str());
        }
        let info = self.message.info().map_err(|error| error.to_string())?;
        headers.insert(
            NATS_MESSAGE_ID,
            format!("dead:{}:{}:{}", info.stream, info.consumer, info.stream_sequence),
        );
        headers.insert(wire::DEAD_SUBJECT, self.message.subject.as_str());
        headers.insert(wire::DEAD_REASON, wire::one_line(why));
        let copy = PublishMessage::build().headers(headers).payload(self.message.payload.clone());
        let context = &self.message.context;
        let sent = context.send_publish(subject.to_owned(), copy).await.map_err(|error| error.to_string())?;
        sent.await.map(drop).map_err(|error| error.to_string())
    }
}

impl Receipt for NatsReceipt {
    fn keep_every(&self) -> Option<Duration> {
        Some(self.keep_every)
    }

    async fn keep(&self) {
        self.say(AckKind::Progress).await;
    }

    async fn done(&self, sure: bool) -> Result<(), String> {
        if sure { self.told(self.message.double_ack()).await } else { self.told(self.message.ack()).await }
    }

    async fn set_aside(&self, why: &str) -> Result<(), String> {
        let (stream, number) = self
            .message
            .info()
            .map_or((String::new(), 0), |info| (info.stream.to_owned(), info.stream_sequence));
        if let Some(subject) = &self.dead_letters {
            self.publish_copy(subject, why).await?;
        }
        self.told(self.message.double_ack_with(AckKind::Term)).await?;
        tracing::error!(stream, number, subject = %self.message.subject, "set aside: this message of the stream");
        Ok(())
    }

    async fn give_back(&self) {
        self.say(AckKind::Nak(None)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_place_is_the_same_however_the_server_spells_it() {
        let replies = ["$JS.ACK.S.c.2.17.4.1700000000.0", "$JS.ACK._.hash.S.c.1.17.3.1700000000.9.token"];
        for reply in replies {
            assert_eq!(place(reply).as_deref(), Some("S:17:1700000000"));
        }
        assert_eq!(place("_INBOX.x"), None);
    }
}
