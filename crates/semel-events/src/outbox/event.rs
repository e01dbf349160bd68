//! Which events can be told at all.

use crate::message::Event;

/// Names go into headers, subjects and routing keys.
const LONGEST_NAME: usize = 255;

/// What brokers take by default. Larger data is stored elsewhere, and the event refers to it.
const LONGEST_PAYLOAD: usize = 1024 * 1024;

/// Why an event cannot be appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEvent {
    /// Of the aggregate.
    #[error("an event's aggregate is 1 to 255 visible ASCII characters, such as payment/pay_1")]
    Aggregate,
    /// Of the kind.
    #[error(
        "an event's kind is 1 to 255 letters, digits, dots, underscores and hyphens, such as PaymentCreated, with no dot at either \
         end or beside another: subjects and routing keys are made of it"
    )]
    Kind,
    /// Of the content type.
    #[error("an event's content type is 1 to 255 printable ASCII characters, such as application/json")]
    ContentType,
    /// Of the payload.
    #[error("an event's payload has at most 1 MiB: store larger data elsewhere and send a reference")]
    Payload,
}

impl Event {
    /// Refuses what no broker would take, while the application can still do something about it. Appending does this by itself.
    ///
    /// # Errors
    /// What cannot be told about it.
    pub fn check(&self) -> Result<(), InvalidEvent> {
        check(self)
    }
}

fn check(event: &Event) -> Result<(), InvalidEvent> {
    let fits = |text: &str| (1..=LONGEST_NAME).contains(&text.len());
    if !fits(&event.aggregate) || !event.aggregate.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(InvalidEvent::Aggregate);
    }
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    if !fits(&event.kind) || !event.kind.split('.').all(word) {
        return Err(InvalidEvent::Kind);
    }
    let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if !fits(&event.content_type) || !event.content_type.bytes().all(printable) {
        return Err(InvalidEvent::ContentType);
    }
    if event.payload.len() > LONGEST_PAYLOAD {
        return Err(InvalidEvent::Payload);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_broker_would_take_is_refused() {
        let event = || Event::json("payment/pay_1", "payments.PaymentCreated", "{}");
        assert_eq!(check(&event()), Ok(()));
        let long = "x".repeat(256);
        for aggregate in ["", "pay 1", "pay\n1", "zahlung/ä", &long] {
            let aggregate = aggregate.to_owned();
            assert_eq!(check(&Event { aggregate, ..event() }), Err(InvalidEvent::Aggregate));
        }
        for kind in
            ["", "Payment Created", "payments.*", "payments..Created", ".Created", "Created.", ">", &long]
        {
            let kind = kind.to_owned();
            assert_eq!(check(&Event { kind, ..event() }), Err(InvalidEvent::Kind));
        }
        for content_type in ["", "text/plain\r\nx: y", &long] {
            let content_type = content_type.to_owned();
            assert_eq!(check(&Event { content_type, ..event() }), Err(InvalidEvent::ContentType));
        }
        let payload = vec![0; LONGEST_PAYLOAD + 1].into();
        assert_eq!(check(&Event { payload, ..event() }), Err(InvalidEvent::Payload));
    }
}
