//! Events and messages.

use bytes::Bytes;
use std::fmt;
use uuid::Uuid;

/// Something that happened, as it is published to others.
///
/// ```
/// use semel_events::message::Event;
///
/// let event = Event::json("payment/pay_1", "PaymentCreated", r#"{"amount":"10.00"}"#);
/// assert_eq!(event.content_type, "application/json");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// The message id: brokers and consumers know a repetition by it. UUIDv7.
    pub id: Uuid,
    /// What it happened to; events of one aggregate are delivered in their order: `payment/pay_1`.
    pub aggregate: String,
    /// What happened: `PaymentCreated`. Sinks make subject, routing key or type of it.
    pub kind: String,
    /// `application/json`, mostly.
    pub content_type: String,
    /// What is to be known about it.
    pub payload: Bytes,
}

impl Event {
    /// An event with an id of its own, whose payload is JSON text.
    pub fn json(aggregate: impl Into<String>, kind: impl Into<String>, payload: impl Into<Bytes>) -> Self {
        Self {
            // The time in it keeps index pages together. Nothing is decided by it.
            id: Uuid::now_v7(),
            aggregate: aggregate.into(),
            kind: kind.into(),
            content_type: "application/json".into(),
            payload: payload.into(),
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, aggregate, kind, content_type, payload } = self;
        debug_message(f.debug_struct("Event").field("id", id), [aggregate, kind, content_type], payload)
    }
}

/// Shows the length of a payload alone: it may hold what must not be in a log.
pub(crate) fn debug_message(
    shown: &mut fmt::DebugStruct<'_, '_>,
    [aggregate, kind, content_type]: [&String; 3],
    payload: &Bytes,
) -> fmt::Result {
    shown
        .field("aggregate", aggregate)
        .field("kind", kind)
        .field("content_type", content_type)
        .field("payload_bytes", &payload.len())
        .finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_never_shown() {
        let event = Event::json("payment/pay_1", "PaymentCreated", "secret");
        assert!(!format!("{event:?}").contains("secret"));
    }
}
